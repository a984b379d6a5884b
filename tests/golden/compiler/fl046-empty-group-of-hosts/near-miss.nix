# A group is there for the groups below it too.
{ base, merge, ... }:
merge base {
  hosts.beta.group = "eu/fra";
  hostGroups = {
    eu.tags = [ "europe" ];
    "eu/fra" = { };
  };
}
