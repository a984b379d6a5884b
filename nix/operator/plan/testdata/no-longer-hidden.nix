# A host is hidden no more, another one becomes so, and a path changes its relay.
{
  base,
  key,
  merge,
}:
let
  relay = n: {
    address = "192.0.2.${toString n}";
    relay = true;
    sshHostKey = key "relay ${toString n}";
  };
  before = merge base {
    pathSalt = "4f9c0d7e1b8a26353c1e9f70d2b48a61";
    hosts = {
      gate = relay 3;
      port = relay 4;
      beta = {
        hidden = true;
        relays = [ "gate" ];
      };
      vault = {
        address = "192.0.2.9";
        relays = [ "gate" ];
        sshHostKey = key "vault";
      };
      laptop = {
        sshHostKey = key "laptop";
        users = [ "ann" ];
      };
    };
    services.safe = {
      host = "vault";
      port = 9000;
    };
    roles.reader.services = [
      "safe"
      "wiki"
    ];
  };
in
{
  inherit before;
  after = merge before {
    hosts.beta.hidden = false;
    hosts.vault = {
      hidden = true;
      relays = [ "port" ];
    };
  };
}
