# Every rule: id → what it refuses, in a few words. Warnings may be acknowledged in the
# topology, errors may not. Ids are stable and never reused. FL050 to FL059 but FL058, and FL125 to FL128, need a
# clock, a parser of certificates, the flake's other files or several clusters: florctl
# finds those.
let
  inherit (builtins) mapAttrs;

  severity = severity: mapAttrs (_: title: { inherit severity title; });
in
severity "error" {
  FL001 = "unknown attribute";
  FL002 = "value of the wrong type or form";
  FL003 = "missing attribute";
  FL004 = "name that cannot be part of an ID";
  FL005 = "reserved name";
  FL006 = "private key";
  FL007 = "no trust roots";
  FL008 = "no signing keys although documents come over the network";
  FL009 = "attributes that exclude each other";
  FL010 = "unknown host";
  FL011 = "unknown service";
  FL012 = "unknown user";
  FL013 = "unknown role";
  FL014 = "unknown group of services";
  FL015 = "unknown identity among callers";
  FL016 = "unknown group of hosts";
  FL017 = "reserved role or group that is missing";
  FL018 = "reserved role where it does not belong";
  FL019 = "unknown need";
  FL020 = "address taken";
  FL021 = "SSH host key taken";
  FL022 = "port taken";
  FL023 = "local listener taken";
  FL024 = "need taken";
  FL025 = "name too long";
  FL026 = "password or token";
  FL027 = "TLS name taken";
  FL028 = "issuer or callback at which nothing answers";
  FL030 = "role that reaches nothing";
  FL031 = "needed kind without provider";
  FL032 = "more replicas than hosts that fit";
  FL033 = "needs that wait for each other";
  FL034 = "role whose host lacks a capability";
  FL035 = "provider whose host lacks a capability";
  FL036 = "public service without an ingress";
  FL037 = "protocol that is not carried";
  FL038 = "address at which callers reach themselves";
  FL039 = "addresses to listen on that exclude each other";
  FL050 = "root certificate that cannot be read";
  FL051 = "root certificate that expired";
  FL052 = "root certificate that is not valid yet";
  FL053 = "root certificate that is no authority";
  FL054 = "root certificate of another trust domain";
  FL055 = "private key in the files of the flake";
  FL057 = "root certificate of a key that is refused";
  FL059 = "host that clusters of a flake describe differently";
  FL060 = "host that a caller has no address of";
  FL062 = "several providers of a kind that needs one store";
  FL063 = "secret that rotates although several hosts have it";
  FL065 = "transports that exclude each other";
  FL066 = "host that cannot keep or share the store";
  FL068 = "rollout that no single provider decides on";
  FL069 = "waves that do not lead to every host";
  FL072 = "host that has no state to move into the store";
  FL075 = "Workload API that nobody on a host may use";
  FL080 = "provider host without SSH host key";
  FL081 = "host that has nowhere to join";
  FL083 = "foreign trust domain taken";
  FL084 = "bundle endpoint of another trust domain";
  FL085 = "bundle of a foreign trust domain that is none";
  FL086 = "bundle endpoint that its profile does not verify";
  FL090 = "kind of your own that nothing answers for";
  FL091 = "unknown kind of your own";
  FL092 = "several hosts of a kind of your own";
  FL093 = "public half that would be a former one";
  FL094 = "public half that operators cannot read";
  FL096 = "team that is not there";
  FL097 = "team or role that has itself in it";
  FL099 = "unknown database server";
  FL100 = "two databases of one name";
  FL102 = "groups that nobody can be in";
  FL103 = "upstream issuer whose name is taken";
  FL104 = "upstream issuer in clear";
  FL105 = "object that is not the tenant's own";
  FL106 = "rule that names what the tenant does not have";
  FL107 = "unknown tenant";
  FL108 = "more rules than the tenant may have";
  FL109 = "wildcard without DNS-01";
  FL121 = "placement that leaves too few hosts";
  FL122 = "pin that does not hold";
  FL123 = "host that runs more than its capacity";
  FL125 = "cluster name taken";
  FL126 = "trust domain of two roots";
  FL127 = "identity of two services";
  FL128 = "foreign identity that its cluster does not have";
}
// severity "warning" {
  FL040 = "user without roles";
  FL041 = "service that nobody may reach";
  FL042 = "acknowledgement of nothing";
  FL043 = "upstream on another host of the cluster";
  FL044 = "user on no host";
  FL045 = "service that cannot reach the issuer it signs in with";
  FL046 = "group of hosts that no host is in";
  FL047 = "identity that its account does not act under";
  FL048 = "role that names a service nobody may reach";
  FL049 = "key or root of the template";
  FL056 = "root certificate that ends soon";
  FL058 = "provider on a device";
  FL061 = "network with one host";
  FL067 = "even number of members of the store";
  FL070 = "what stays on a host to be drained";
  FL071 = "cordon that moves services";
  FL095 = "public half of another key than readers have";
  FL098 = "team by which nobody reaches anything";
  FL101 = "database at a server that its service cannot reach";
  FL110 = "public service without a name at an ingress";
  FL124 = "fact whose name speaks of a secret";
}
