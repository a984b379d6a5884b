# A relay comes, a host is also reached through it, and a host without an address publishes.
{
  base,
  key,
  merge,
}:
let
  before = merge base {
    pathSalt = "4f9c0d7e1b8a26353c1e9f70d2b48a61";
    hosts = {
      gate = {
        address = "192.0.2.3";
        sshHostKey = key "gate";
      };
      laptop = {
        sshHostKey = key "laptop";
        users = [ "ann" ];
      };
      nas.sshHostKey = key "nas";
    };
    services.films = {
      host = "nas";
      port = 8096;
      visibility = "host";
    };
    roles.reader.services = [
      "films"
      "wiki"
    ];
  };
in
{
  inherit before;
  after = merge before {
    hosts = {
      gate.relay = true;
      beta.relays = [ "gate" ];
      nas.relays = [ "gate" ];
    };
    services.films.visibility = "cluster";
  };
}
