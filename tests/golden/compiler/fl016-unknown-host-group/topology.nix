{ base, merge, ... }: merge base {
  inventory.eu = { };
  inventory."eu/fra" = { };
  hosts.alpha.group = "eu/fr";
  hosts.beta.group = "asia/tokyo";
}
