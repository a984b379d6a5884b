# A group applies to the groups below it too.
{ base, merge, ... }:
merge base {
  hosts.beta.group = "eu/fra";
  hostGroups = {
    eu.tags = [ "europe" ];
    "eu/fra" = { };
  };
}
