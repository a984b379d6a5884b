{ base, merge, ... }: merge base {
  inventory."eu/fra" = { };
  hosts.alpha.group = "eu/fra";
}
