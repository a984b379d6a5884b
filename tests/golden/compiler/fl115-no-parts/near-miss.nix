# Each host has its own besides.
{ base, merge, ... }:
merge base {
  services.wiki.host = "";
  services.wiki.hosts = [
    "alpha"
    "beta"
  ];
  services.wiki.scope = "both";
  roles.reader.services = [ "wiki@beta" ];
}
