# The record of a host.
let
  inherit (import ./types)
    attrsOf
    between
    default
    enum
    listOf
    named
    of
    oneOrMore
    record
    ;
  inherit (import ./formats)
    address
    bind
    caller
    date
    fact
    flag
    groupPath
    loopback
    instance
    name
    port
    replicas
    seconds
    sshKey
    strings
    tags
    ;
in
record "a host" {
  # A host that nobody calls, such as a laptop, needs no address.
  address = of "where others call this host, from anywhere: IP addresses and DNS names, tried one beside the other. Behind a NAT that forwards another port to the forwarder, with that port" (
    oneOrMore address
  );
  networks =
    of
      "networks that this host is on, and where the others on them call it, which they try first: `networks.lan = \"10.0.0.5\";`. On one where nobody calls it: `[ ]`"
      (named { what = "network"; } (oneOrMore address));
  bind = of "addresses of its own on which forwarder and provider listen; all, unless written" (
    oneOrMore bind
  );
  sshHostKey =
    of
      "public half of the key that proves the host when it enrols: the line of /etc/ssh/ssh_host_ed25519_key.pub. Without one the host makes a key, which an operator admits: `florctl token create`"
      sshKey;
  kind = of "services with replicas are placed on servers alone" (enum [
    "server"
    "device"
  ]);
  system =
    default
      "what it runs: programs for anything else are not bundled, and a NixOS host that is another is a fault"
      null
      (enum [
        "x86_64-linux"
        "aarch64-linux"
      ]);
  deploy = of "how new documents arrive: from providers.config, or with the host's own system" (enum [
    "network"
    "closure"
  ]);
  group = of "where it belongs in `hostGroups`, `\"eu/fra\"`: it has what `hostGroups.eu` and `hostGroups.\"eu/fra\"` have" groupPath;
  capabilities = of "what it can do; roles and providers may require it. `ingress`: it takes in strangers" tags;
  tags = of "words for placement" tags;
  weight =
    default "services with replicas prefer it so many times as often as a host of weight 1" 1
      (between 1 10 "a weight");
  capacity =
    default
      "how much it runs at most: services with replicas are not placed here beyond that, each counts with its `placement.size`; those that name this host count too"
      null
      (between 0 100000 "a capacity");
  cordon = of "services with replicas are not placed here, but for those that it `keeps` and those of which every host has its own" flag;
  keeps = of "services with replicas that stay, on a host with `cordon` or `drain`" strings;
  drain = of "services with replicas are placed elsewhere, but for those that it `keeps` and those of which every host has its own" flag;
  facts = of "what other hosts' configurations may read of it, such as public keys, DNS records and ports: `topology.hosts.<name>.facts`; never a secret" (
    named { what = "fact"; } fact
  );
  users = of "who may act on this host: it gets their certificates" strings;
  roles = of "of the node, besides `node`" strings;
  until = of "roles up to a time, as of users" (attrsOf date);
  callers = of "which accounts (names, or uids as numbers) and system units (`\"wiki.service\"`) act under an identity of this host: `\"node\"`, `\"user/<name>\"`, `\"service/<name>\"`" (
    attrsOf (listOf caller)
  );
  loopback = of "range of its local listeners" loopback;
  instance = of "for a host that is a member of another cluster too: this one has directories, units and accounts called `florete_<instance>` there" instance;
  providerPort =
    default
      "TCP port where it issues certificates; its other kinds of provider have the ports after that: config the first, file the second, oidc the third, jwt the fourth, federation the fifth, secret the sixth, database the seventh, token the eighth, tls the ninth, git the eleventh"
      4600
      (between 1 65524 "a port with eleven after it");
  forwarderPort = default "port of its forwarder, of UDP and TCP" 4610 port;
  transport =
    of
      "what goes between its forwarder and others: `auto`, QUIC, and TLS over TCP where UDP does not pass"
      (enum [
        "auto"
        "quic"
        "tcp"
      ]);
  drainTimeout =
    default
      "when its forwarder is replaced, as by an upgrade, the old process carries the connections it has for so many seconds beside the new one"
      600
      seconds;
}
