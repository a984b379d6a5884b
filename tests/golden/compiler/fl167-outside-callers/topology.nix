# Both callers come from one address to one port of the same host.
{ base, merge, ... }:
merge base {
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
    addresses = [ "10.0.5.20" ];
    via = "alpha";
    reaches = [ "blog" ];
  };
  outside.sensor = {
    addresses = [ "10.0.5.20/32" ];
    via = "alpha";
    reaches = [ "wiki" ];
  };
}
