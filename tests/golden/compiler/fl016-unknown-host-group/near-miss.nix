{ base, merge, ... }:
merge base {
  hostGroups."eu/fra" = { };
  hosts.alpha.group = "eu/fra";
}
