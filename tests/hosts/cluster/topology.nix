# A provider host, two hosts with services, the host of an operator, and a laptop.
{ facts, roots }:
let
  host =
    name: more:
    {
      address = facts.addresses.${name};
      sshHostKey = facts.sshHostKeys.${name};
    }
    // more;
in
{
  name = "demo";
  trustDomain = "demo.flor";
  trust = {
    inherit roots;
    signingKeys = facts.keys;
  };

  hosts = builtins.mapAttrs host {
    drhorrible = { };
    raishan.roles = [ "reader" ];
    ursula = { };
    mgmt01.roles = [ "operator" ];
    laptop = {
      kind = "device";
      users = [ "alice" ];
    };
  };

  services = {
    auth = {
      host = "drhorrible";
      port = 5556;
      listenPort = 80;
    };
    metrics = {
      host = "mgmt01";
      port = 9090;
      listenPort = 80;
    };
    wiki = {
      host = "ursula";
      port = 4655;
      listenPort = 80;
    };
    outline = {
      host = "ursula";
      port = 4654;
      listenPort = 80;
      user = "outline";
      roles = [ "oidc-client" ];
      sso = {
        mode = "oidc";
        restart = "outline.service";
        redirectURIs = [ "http://outline.demo.flor.rete/auth/oidc.callback" ];
      };
    };
  };

  users.alice.roles = [ "writer" ];
  roles = {
    writer.serviceGroups = [ "apps" ];
    reader.services = [ "outline" ];
    oidc-client.services = [ "auth" ];
    operator.serviceGroups = [
      "apps"
      "control-plane"
      "control-plane-write"
    ];
    node.services = [ "metrics" ];
  };
  serviceGroups = {
    apps = [
      "auth"
      "outline"
      "wiki"
    ];
    control-plane = [ "metrics" ];
    control-plane-write = [ ];
  };

  providers = {
    cert.hosts = [ "drhorrible" ];
    oidc = {
      hosts = [ "drhorrible" ];
      issuer = "http://auth.demo.flor.rete";
    };
    config.hosts = [ "drhorrible" ];
  };
}
