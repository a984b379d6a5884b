# This cluster is visited by the browser tests. It has three hosts:
#
#  - `forge` is the provider. It runs outline, in which people sign in, a board, for which the
#    ingress signs people in, the sign-in pages, and the wiki, which is not public.
#  - `gate` is the ingress, and the relay of `home`.
#  - `home` is a host to which nobody can connect directly.
#
# No DNS server knows the domain `example`.
let
  facts = builtins.fromJSON (builtins.readFile ./facts.json);
  me = [ facts.account ];
  host =
    number: name: more:
    {
      bind = "127.0.1.${toString number}";
      loopback = "127.${toString (100 + number)}.0.0/16";
      sshHostKey = facts.sshHostKeys.${name};
    }
    // more;
in
{
  name = "web";
  trustDomain = "demo.flor";
  pathSalt = "4f9c0d7e1b8a26353c1e9f70d2b48a61";
  trust = {
    roots = [ ./ca.crt ];
    signingKeys = facts.keys;
  };

  hosts = {
    forge = host 1 "forge" {
      address = "127.0.1.1";
      inherit (facts) instance;
    };
    gate = host 2 "gate" {
      address = "127.0.1.2";
      relay = true;
      capabilities = [ "ingress" ];
      roles = [ "oidc-client" ];
      users = [ "olga" ];
      callers."user/olga" = me;
    };
    home = host 3 "home" { relays = [ "gate" ]; };
  };

  services = {
    auth = {
      host = "forge";
      port = 5556;
      visibility = "public";
      tlsName = "auth.example";
    };
    outline = {
      host = "forge";
      port = 4654;
      visibility = "public";
      tlsName = "outline.example";
      roles = [ "oidc-client" ];
      sso = {
        mode = "oidc";
        restart = "outline.service";
        redirectURIs = [ "https://outline.example/auth/oidc.callback" ];
      };
    };
    board = {
      host = "forge";
      port = 4657;
      visibility = "public";
      tlsName = "board.example";
      sso.mode = "gate";
    };
    photos = {
      host = "home";
      port = 4656;
      visibility = "public";
      tlsName = "photos.example";
    };
    wiki = {
      host = "forge";
      port = 4655;
    };
    # nginx's workers connect to services under this identity.
    proxy = {
      host = "gate";
      port = 443;
      visibility = "host";
      user = facts.account;
      roles = [ "gate" ];
    };
  };

  users.olga.roles = [ "operator" ];
  roles = {
    gate.services = [
      "auth"
      "board"
      "outline"
      "photos"
      "wiki"
    ];
    oidc-client.services = [ "auth" ];
    operator.serviceGroups = [
      "control-plane"
      "control-plane-write"
    ];
    node = { };
  };
  serviceGroups = {
    control-plane = [ ];
    control-plane-write = [ ];
  };

  providers = {
    cert.hosts = [ "forge" ];
    config.hosts = [ "forge" ];
    oidc = {
      hosts = [ "forge" ];
      issuer = "https://auth.example";
    };
    tls = {
      hosts = [ "forge" ];
      internal = [ "example" ];
    };
  };
}
