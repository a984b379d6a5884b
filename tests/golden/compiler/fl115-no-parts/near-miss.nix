# Each host also has an instance of its own.
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
