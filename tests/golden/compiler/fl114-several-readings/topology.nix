# alpha is the name of a host, and a tag of another.
{ base, merge, ... }:
merge base {
  hosts.beta.tags = [ "alpha" ];
  services.shell = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 22;
    scope = "node";
  };
  roles.reader.services = [ "shell@alpha" ];
}
