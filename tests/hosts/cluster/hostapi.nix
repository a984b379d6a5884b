# Ursula publishes its own API, for reading and for orders of operators.
base:
let
  published = upstream: {
    host = "ursula";
    scope = "node";
    inherit upstream;
    listenPort = 80;
  };
in
{
  services = base.services // {
    host = published "unix:/run/florete-host.sock";
    refetch = published "unix:/run/florete-host-refetch.sock";
  };
  roles = base.roles // {
    reader.services = base.roles.reader.services ++ [ "host" ];
    operator = base.roles.operator // {
      services = [
        "host"
        "refetch"
      ];
    };
  };
}
