# Three hosts: `p` provides, alice is at `b` and at `c`, and each of these has services that she
# calls from the other: `echo` and `heard`, `down` and `mute`, which are not there, `gone`, which
# she loses, `late`, which comes later, and `wiki`, which has secrets. facts.json has what changes.
let
  facts = builtins.fromJSON (builtins.readFile ./facts.json);
  inherit (builtins) attrNames listToAttrs;
  inherit (facts) account loopback;

  host = number: name: {
    address = "${loopback}.0.${toString number}";
    bind = "${loopback}.0.${toString number}";
    loopback = "${loopback}.${toString (64 * number)}.0/18";
    sshHostKey = facts.sshHostKeys.${name};
  };
  # Of all who may act under the account of the test, alice does.
  alice = name: {
    users = [ "alice" ];
    callers = {
      "user/alice" = [ account ];
    }
    // listToAttrs (
      map (service: {
        name = "service/${service}";
        value = [ ];
      }) (attrNames (on name 0))
    );
  };

  on =
    name: number:
    {
      "down-${name}" = service name number 8905 { };
      "echo-${name}" = service name number 8901 (
        if facts.announced == name then { identity = "proxy-v2"; } else { }
      );
      "gone-${name}" = service name number 8903 { };
      "heard-${name}" = service name number 8902 { protocol = "udp"; };
      "mute-${name}" = service name number 8907 { protocol = "udp"; };
      "wiki-${name}" = service name number 8904 {
        listenPort = 80;
        roles = [ "oidc-client" ];
        sso = {
          mode = "oidc";
          restart = "wiki.service";
          redirectURIs = [ "http://wiki-${name}.demo.flor.rete/callback" ];
        };
        files.password = {
          ref = "wiki/password";
          restart = "wiki.service";
        };
      };
    }
    // (if facts.late == name then { late = service name number 8906 { }; } else { });
  service =
    name: number: port: more:
    {
      inherit port;
      host = name;
      upstream = "${loopback}.0.${toString number}:${toString port}";
      user = account;
    }
    // more;
in
{
  name = "mixed";
  trustDomain = "demo.flor";
  trust = {
    roots = [ ./ca.crt ];
    signingKeys = facts.keys;
  };

  hosts = {
    p = host 1 "p";
    b = host 2 "b" // alice "b";
    c = host 3 "c" // alice "c";
  };

  services =
    on "b" 2
    // on "c" 3
    // {
      auth = service "p" 1 5556 { listenPort = 80; };
    };

  users.alice.roles = [ "writer" ];

  roles = {
    writer.services = [
      "auth"
      "down-b"
      "down-c"
      "echo-b"
      "echo-c"
      "heard-b"
      "heard-c"
      "mute-b"
      "mute-c"
      "wiki-b"
      "wiki-c"
    ]
    ++ facts.granted
    ++ (if facts.late == "" then [ ] else [ "late" ]);
    node.services = [ ];
    oidc-client.services = [ "auth" ];
    operator.serviceGroups = [
      "control-plane"
      "control-plane-write"
    ];
  };
  serviceGroups = {
    control-plane = [ ];
    control-plane-write = [ ];
  };

  providers = {
    cert.hosts = [ "p" ];
    config = {
      hosts = [ "p" ];
      interval = 1;
      staleAfter = 3600;
    };
    file.hosts = [ "p" ];
    oidc = {
      hosts = [ "p" ];
      issuer = "http://auth.demo.flor.rete";
    };
  };

  acknowledge = map (name: {
    id = "FL041";
    place = "services.${name}";
    reason = "alice lost it";
  }) facts.lost;
}
