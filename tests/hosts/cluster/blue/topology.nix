# Two hosts with a service each; the host that provides also provides in the first cluster.
{ facts, roots }:
let
  member =
    name: more:
    {
      address = facts.addresses.${name};
      sshHostKey = facts.sshHostKeys.${name};
      instance = "blue";
      forwarderPort = 4620;
    }
    // more;
in
{
  name = "blue";
  trustDomain = "blue.flor";
  trust = {
    inherit roots;
    signingKeys = facts.keys;
  };

  hosts = builtins.mapAttrs member {
    drhorrible.providerPort = 4700;
    ursula = { };
  };

  services = {
    ledger = {
      host = "ursula";
      port = 4701;
      listenPort = 80;
    };
    press = {
      host = "drhorrible";
      port = 4702;
      listenPort = 80;
    };
  };

  roles = {
    node.serviceGroups = [ "apps" ];
    operator.serviceGroups = [ "control-plane" ];
  };
  serviceGroups = {
    apps = [
      "ledger"
      "press"
    ];
    control-plane = [ "press" ];
    control-plane-write = [ ];
  };

  providers.cert.hosts = [ "drhorrible" ];
}
