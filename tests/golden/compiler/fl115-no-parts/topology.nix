# The wiki is one wherever it runs.
{ base, merge, ... }:
merge base {
  services.wiki.host = "";
  services.wiki.hosts = [
    "alpha"
    "beta"
  ];
  roles.reader.services = [ "wiki@beta" ];
}
