# They have addresses of their own, or call different hosts.
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
  services.mqtt = {
    host = "beta";
    port = 1883;
  };
  outside.camera = {
    addresses = [ "10.0.5.23" ];
    mtls = true;
    via = "alpha";
    reaches = [ "mqtt" ];
  };
  outside.printer = {
    addresses = [ "10.0.5.22" ];
    via = "alpha";
    reaches = [ "mqtt" ];
  };
  outside.sensor = {
    addresses = [ "10.0.5.24/29" ];
    via = "alpha";
    reaches = [ "wiki" ];
  };
}
