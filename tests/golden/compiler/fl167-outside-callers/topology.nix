# A caller comes to a port of a host, and so does a network that contains its address. At another
# port, the host cannot know whether a caller begins with TLS for it.
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
    addresses = [ "10.0.5.16/29" ];
    via = "alpha";
    reaches = [ "wiki" ];
  };
}
