# Two clusters that share a trust domain and a root.
#
#  - `demo` has the provider and ingress `front`, which also runs the service wiki, and the host
#    `desk`.
#  - `blue` has one host, `gate`, with the service tickets and the issuer.
#
# People sign in to wiki at the issuer of blue, if blue has its client.
#
# The ingress of demo serves the public name of tickets. Roles of demo lead both of its nodes to
# tickets, and blue lets in only the node of the ingress.
let
  facts = builtins.fromJSON (builtins.readFile ./facts.json);
  host =
    number: name: more:
    {
      address = "127.0.1.${toString number}";
      bind = "127.0.1.${toString number}";
      loopback = "127.${toString (100 + number)}.0.0/16";
      sshHostKey = facts.sshHostKeys.${name};
    }
    // more;
  common = {
    trustDomain = "demo.flor";
    trust = {
      roots = [ ./ca.crt ];
      signingKeys = facts.keys;
    };
    serviceGroups = {
      control-plane = [ ];
      control-plane-write = [ ];
    };
  };
  operator.serviceGroups = [
    "control-plane"
    "control-plane-write"
  ];
in
{
  demo = common // {
    name = "demo";
    hosts = {
      front = host 1 "front" {
        capabilities = [ "ingress" ];
        roles = [ "edge" ];
      };
      desk = host 2 "desk" { roles = [ "edge" ]; };
    };
    clusters.blue.services.tickets = {
      address = "127.0.1.3:4610";
      port = 80;
    }
    // (
      if facts.public then
        {
          tlsName = "tickets.example";
          ingress.paths."/admin".deny = true;
        }
      else
        { }
    );
    clusters.blue.oidc = {
      issuer = "http://auth.demo.flor.rete:5556";
      hosts.gate = "127.0.1.3:4603";
    };
    services.wiki = {
      host = "front";
      port = 4661;
      sso = {
        mode = "oidc";
        cluster = "blue";
        redirectURIs = [ "http://wiki.example/callback" ];
      };
    };
    roles = {
      node = { };
      inherit operator;
      edge.services = [ "tickets@blue" ];
    };
    providers = {
      cert.hosts = [ "front" ];
      tls = {
        hosts = [ "front" ];
        internal = [ "example" ];
      };
    };
  };

  blue = common // {
    name = "blue";
    hosts.gate = host 3 "gate" { };
    services.tickets = {
      host = "gate";
      port = 4660;
      listenPort = 80;
    };
    services.auth = {
      host = "gate";
      port = 5556;
    };
    clusters.demo = {
      identities."node/front".roles = [ "reader" ];
      clients =
        if facts.client then
          {
            wiki = {
              nodes.front = facts.sshHostKeys.front;
              redirectURIs = [ "http://wiki.example/callback" ];
            };
          }
        else
          { };
    };
    roles = {
      node = { };
      inherit operator;
      reader.services = [ "tickets" ];
    };
    providers = {
      cert.hosts = [ "gate" ];
      oidc = {
        hosts = [ "gate" ];
        issuer = "http://auth.demo.flor.rete:5556";
      };
    };
  };
}
