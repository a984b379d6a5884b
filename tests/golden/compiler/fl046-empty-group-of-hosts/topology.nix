{ base, merge, ... }:
merge base {
  hosts.beta.group = "eu/fra";
  hostGroups = {
    "eu/fra" = { };
    "eu/far".tags = [ "frankfurt" ];
    us.roles = [ "reader" ];
  };
}
