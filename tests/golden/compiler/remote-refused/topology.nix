# Services where people open sessions, with attributes that go with other protocols only.
{ base, merge, ... }:
merge base {
  services.desk = {
    host = "beta";
    port = 3389;
    protocol = "rdp";
    identity = "proxy-v2";
  };
  services.screens = {
    host = "beta";
    ports.one = 5901;
    ports.two = 5902;
    protocol = "vnc";
  };
  services.shell = {
    host = "beta";
    port = 22;
    protocol = "ssh";
    visibility = "public";
    tlsName = "shell.example.org";
  };
  services.kiosk = {
    host = "beta";
    port = 3390;
    protocol = "RDP";
  };
}
