# This cluster is the target of the attacks. Host `p` is the provider, services run on host `b`, and
# people work on host `c`. The hosts `d`, `e`, `f`, `h` and `i` join with a token, and `g` joins with
# an identity file. These people have access:
#
#  - Alice may reach `echo` and `wiki`. She may also reach `deaf`, which never reads, `down`, which
#    does not run, and `requests` and `bytes`, which are told who their caller is.
#  - Carol and the guest from the foreign trust domain blue.example may reach `echo`.
#  - Bob may reach only the issuer.
#  - Dora operates the config provider, and Erin may read there.
#
# Strangers reach `mail` and `queue` through host `c`, and the machine `scanner`, which has no agent,
# reaches `inner`. The machine `camera`, which has a certificate, reaches `queue`. The node of `p` and
# Alice may reach `mail`, too.
#
# Erin may request the role `oncall`, which reaches `vault`. Dora and Erin may approve requests.
#
# Nobody may reach `secret`.
let
  facts = builtins.fromJSON (builtins.readFile ./facts.json);
  host =
    number: name: more:
    {
      address = "${facts.loopback}.0.${toString number}";
      bind = "${facts.loopback}.0.${toString number}";
      loopback = "${facts.loopback}.${toString (64 * number)}.0/18";
      sshHostKey = facts.sshHostKeys.${name};
    }
    // more;
in
{
  name = "sec";
  trustDomain = "demo.flor";
  trust = {
    roots = [ ./ca.crt ];
    signingKeys = facts.keys;
    threshold = facts.threshold or 1;
  };

  hosts = {
    p = host 1 "p" {
      inherit (facts) instance;
      roles = [ "edge" ];
    };
    b = host 2 "b" {
      callers = {
        "service/wiki" = [ facts.account ];
      };
    };
    c = host 3 "c" {
      capabilities = [ "ingress" ];
      roles = [ "edge" ];
      users = [
        "alice"
        "bob"
        "carol"
        "dora"
        "erin"
      ];
      callers = {
        "user/alice" = [ facts.alice ];
        "user/bob" = [ facts.bob ];
        "user/carol" = [ facts.carol ];
        "user/dora" = [ facts.dora ];
        "user/erin" = [ facts.erin ];
      };
    };
    d = removeAttrs (host 4 "d" { loopback = "${facts.loopback}.16.0/20"; }) [ "sshHostKey" ];
    e = removeAttrs (host 5 "e" { loopback = "${facts.loopback}.32.0/20"; }) [ "sshHostKey" ];
    f = removeAttrs (host 6 "f" { loopback = "${facts.loopback}.48.0/21"; }) [ "sshHostKey" ];
    g = removeAttrs (host 7 "g" {
      kind = "device";
      loopback = "${facts.loopback}.56.0/21";
      users = [ "alice" ];
    }) [ "sshHostKey" ];
    h = removeAttrs (host 8 "h" { loopback = "${facts.loopback}.8.0/21"; }) [ "sshHostKey" ];
    i = removeAttrs (host 9 "i" { loopback = "${facts.loopback}.4.0/22"; }) [ "sshHostKey" ];
  };

  services = import ./services.nix facts;

  outside.scanner = {
    addresses = [ "${facts.loopback}.0.67" ];
    via = "c";
    reaches = [ "inner" ];
  };

  outside.camera = {
    mtls = true;
    via = "c";
    reaches = [ "queue" ];
  };

  users = {
    alice.roles = [ "writer" ];
    bob.roles = [ "reader" ];
    carol.roles = [ "visitor" ];
    dora = {
      roles = [ "operator" ];
      approvalKeys = [ facts.approvals.dora ];
    };
    erin = {
      roles = [ "auditor" ];
      approvalKeys = [ facts.approvals.erin ];
    };
  };

  teams.ops.users = [ "erin" ];
  teams.leads.users = [
    "dora"
    "erin"
  ];

  tenants.acme = {
    namespaces = [ "payments" ];
    runtimeRules = true;
    policies =
      map
        (action: {
          subject = "user/dora";
          inherit action;
          object = "tenant:acme";
        })
        [
          "rbac.assignment.manage"
          "rbac.policy.manage"
          "rbac.view"
        ];
  };

  federated.blue = {
    trustDomain = "blue.example";
    endpoint = facts.blue;
    endpointID = "spiffe://blue.example/service/bundles";
    bundle = ./blue.bundle.json;
    identities."user/guest".roles = facts.guest or [ "visitor" ];
  };

  roles = {
    node.services = [ "echo" ];
    writer.services = [
      "auth"
      "bytes"
      "deaf"
      "down"
      "echo"
      "heard"
      "mail"
      "requests"
      "tokens"
      "wiki"
    ];
    oncall = {
      services = [ "vault" ];
      request = {
        by = [ "ops" ];
        approve = [ "leads" ];
        most = 1;
      };
    };
    reader.services = [ "auth" ];
    visitor.services = [ "echo" ];
    edge.services = [
      "mail"
      "queue"
    ];
    oidc-client.services = [ "auth" ];
    auditor.serviceGroups = [ "control-plane" ];
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
    config.hosts = [ "p" ];
    federation = {
      hosts = [ "p" ];
      refresh = 60;
    };
    file.hosts = [ "p" ];
    jwt = {
      hosts = [ "p" ];
      issuer = "http://tokens.demo.flor.rete";
    };
    oidc = {
      hosts = [ "p" ];
      issuer = "http://auth.demo.flor.rete";
    };
    token = {
      hosts = [ "p" ];
      issuer = "https://tenants.example.org";
    };
  };

  rollout = facts.rollout or { };

  acknowledge = [
    {
      id = "FL041";
      place = "services.secret";
      reason = "what is behind it must not be reached";
    }
  ];
}
