# The wiki has one instance for all hosts.
{ base, merge, ... }:
merge base {
  services.wiki.host = "";
  services.wiki.hosts = [
    "alpha"
    "beta"
  ];
  roles.reader.services = [ "wiki@beta" ];
}
