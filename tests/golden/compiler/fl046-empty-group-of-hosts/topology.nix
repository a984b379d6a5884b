{ base, merge, ... }: merge base {
  hosts.beta.group = "eu/fra";
  inventory = { "eu/fra" = { }; "eu/far".tags = [ "frankfurt" ]; us.roles = [ "reader" ]; };
}
