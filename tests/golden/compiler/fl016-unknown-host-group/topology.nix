{ base, merge, ... }:
merge base {
  hostGroups.eu = { };
  hostGroups."eu/fra" = { };
  hosts.alpha.group = "eu/fr";
  hosts.beta.group = "asia/tokyo";
}
