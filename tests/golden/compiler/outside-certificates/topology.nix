# Machines without an agent prove who they are with certificates. One of them must have an address,
# too. They call the same port and reach different services.
{ base, merge, ... }:
merge base {
  services.wiki.identity = "proxy-v2";
  services.blog = {
    host = "beta";
    port = 8081;
    listenPort = 8080;
  };
  roles.reader.services = [
    "blog"
    "wiki"
  ];
  outside.scanner = {
    mtls = true;
    via = "alpha";
    reaches = [ "wiki" ];
  };
  outside.sensor = {
    addresses = [ "10.0.5.20" ];
    mtls = true;
    via = "alpha";
    reaches = [ "blog" ];
  };
}
