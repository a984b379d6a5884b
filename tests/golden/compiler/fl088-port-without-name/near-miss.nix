# A port of a service that has several.
{ base, merge, ... }:
merge base {
  services.wiki = {
    port = null;
    ports.http = 8080;
  };
  roles.reader.services = [ "wiki:http" ];
}
