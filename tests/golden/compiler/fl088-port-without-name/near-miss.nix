# It is one of several that can be.
{ base, merge, ... }:
merge base {
  services.wiki = {
    port = null;
    ports.http = 8080;
  };
  roles.reader.services = [ "wiki:http" ];
}
