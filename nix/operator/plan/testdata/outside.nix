# A machine without an agent gets another address, and reaches one service more.
{ base, merge, ... }:
let
  before = merge base {
    services.mqtt = {
      host = "beta";
      port = 1883;
    };
    outside.sensor = {
      addresses = [ "10.0.5.20" ];
      via = "alpha";
      reaches = [ "mqtt" ];
    };
  };
in
{
  inherit before;
  after = merge before {
    outside.sensor = {
      addresses = [
        "10.0.5.20"
        "10.0.6.0/24"
      ];
      reaches = [
        "mqtt"
        "wiki"
      ];
    };
  };
}
