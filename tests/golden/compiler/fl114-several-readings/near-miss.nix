# All readings lead to the same host, on which the service runs.
{ base, merge, ... }:
merge base {
  hosts.alpha.group = "beta";
  hosts.beta.tags = [ "beta" ];
  hosts.beta.group = "beta";
  hostGroups.beta = { };
  services.shell = {
    hosts = [ "beta" ];
    port = 22;
    scope = "node";
  };
  roles.reader.services = [ "shell@beta" ];
}
