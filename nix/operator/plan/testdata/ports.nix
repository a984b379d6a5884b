# Of several ports one is opened to a user, one closed, one leads to another upstream, and one is
# new, over both protocols.
{ base, merge, ... }:
let
  clusterWith =
    ports: roles:
    merge base {
      services.wiki = {
        port = null;
        ports = {
          http = 8080;
          metrics = 9100;
        }
        // ports;
      };
      services.scraper = {
        host = "alpha";
        port = 9090;
        user = "prometheus";
        roles = [ "scraper" ];
      };
      inherit roles;
    };
in
{
  before = clusterWith { } {
    reader.services = [
      "scraper"
      "wiki"
    ];
    scraper.services = [ "wiki:http" ];
  };
  after =
    clusterWith
      {
        dns = {
          port = 53;
          protocol = [
            "tcp"
            "udp"
          ];
        };
        metrics.port = 9101;
      }
      {
        reader.services = [
          "scraper"
          "wiki"
        ];
        scraper.services = [ "wiki:metrics" ];
      };
}
