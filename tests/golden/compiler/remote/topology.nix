# Desktops: ann opens the desktop of each host over RDP, and a screen on beta over VNC.
{ base, merge, ... }:
merge base {
  hosts.beta.users = [ "ann" ];
  services.desk = {
    hosts = [
      "alpha"
      "beta"
    ];
    port = 3389;
    scope = "node";
    protocol = "rdp";
    user = "xrdp";
    accessLog = "full";
  };
  services.screen = {
    host = "beta";
    port = 5901;
    listenPort = 5900;
    protocol = "vnc";
  };
  roles.reader.services = [
    "desk"
    "screen"
    "wiki"
  ];
}
