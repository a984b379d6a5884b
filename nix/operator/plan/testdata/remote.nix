# The desktop of beta is declared as one, and the screen changes from VNC to RDP.
{ base, merge, ... }:
let
  desktops = merge base {
    services.desk = {
      host = "beta";
      port = 3389;
    };
    services.screen = {
      host = "beta";
      port = 5900;
      protocol = "vnc";
    };
    roles.reader.services = [
      "desk"
      "screen"
      "wiki"
    ];
  };
in
{
  before = desktops;
  after = merge desktops {
    services.desk.protocol = "rdp";
    services.screen.protocol = "rdp";
  };
}
