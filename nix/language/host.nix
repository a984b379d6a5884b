# The record of a host.
let
  inherit (import ./types)
    atMost
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
  limits = import ./limits.nix;
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
    seconds
    sshKey
    strings
    tags
    ;
in
record "a host" {
  # A host that no other host calls, such as a laptop, needs no address.
  address = of "IP addresses and DNS names at which others call this host from anywhere. Callers try them side by side. Add a port if a NAT forwards another port to the forwarder." (
    oneOrMore address
  );
  networks =
    of
      "Networks that the host is on, with the addresses at which others on the same network call it first: `networks.lan = \"10.0.0.5\";`. Write `[ ]` for a network on which nobody calls it."
      (named { what = "network"; } (oneOrMore address));
  bind = of "Addresses of the host on which its forwarder and providers listen. By default all." (
    oneOrMore bind
  );
  relay = of "Whether the host carries connections between other hosts, which it can neither read nor change. It needs an address." flag;
  relayLimits = limits 4096 "Limits that this relay applies to each host, for the connections that the host makes through it.";
  relays = of "Hosts with `relay = true;` through which others reach this host, besides its own addresses. It keeps a connection to two of them. By default those of the innermost of its host groups." (
    atMost 4 name
  );
  hidden = of "Whether the other hosts get no address of the host and reach it through its `relays` alone. Needs `pathSalt`." flag;
  sshHostKey =
    of
      "Public SSH host key, which proves the host when it enrols: the line of /etc/ssh/ssh_host_ed25519_key.pub. Without it the host makes a key, which an operator admits: `florctl join token create`."
      sshKey;
  kind = of "Kind of machine. Services with replicas are placed on servers only." (enum [
    "server"
    "device"
  ]);
  system =
    default
      "System of the host. Bundles with programs for another system are refused, and so is a NixOS configuration for one."
      null
      (enum [
        "x86_64-linux"
        "aarch64-linux"
      ]);
  deploy = of "How new documents arrive: `network`, from `providers.config`; `closure`, with the host's own system." (enum [
    "network"
    "closure"
  ]);
  group = of "Group of the host, such as `\"eu/fra\"`. The host has everything that `hostGroups.eu` and `hostGroups.\"eu/fra\"` have." groupPath;
  capabilities = of "Capabilities of the host, which roles, placement and providers may require. With `ingress` it takes in strangers." tags;
  tags = of "Words by which `placement`, rollouts and roles select hosts." tags;
  weight =
    default
      "How many times as often as a host of weight 1 services with replicas prefer this host."
      1
      (between 1 10 "a weight");
  capacity =
    default
      "Most that the host runs, in units of `placement.size`. Services that name the host count, too. By default there is no limit."
      null
      (between 0 100000 "a capacity");
  cordon = of "Place no services with replicas on this host, except those in `keeps` and those with `replicas = \"all\"`." flag;
  keeps = of "Services with replicas that stay on a host with `cordon` or `drain`." strings;
  drain = of "Move services with replicas to other hosts, except those in `keeps` and those with `replicas = \"all\"`." flag;
  facts = of "Public values that configurations of other hosts read from `topology.hosts.<name>.facts`, such as public keys, DNS records and ports. Never a secret." (
    named { what = "fact"; } fact
  );
  users = of "Users who may act on this host. It gets their certificates." strings;
  roles = of "Roles of the node, besides `node`." strings;
  until = of "Roles up to a time, as for users." (attrsOf date);
  callers = of "Accounts (names, or numbers as user IDs) and system units (`\"wiki.service\"`) that act under an identity of this host: `\"node\"`, `\"user/<name>\"` or `\"service/<name>\"`." (
    attrsOf (listOf caller)
  );
  loopback = of "Range of the addresses of local listeners, at which programs of the host reach services." loopback;
  instance = of "For a host that is a member of another cluster, too: directories, units and accounts of this cluster are called `florete_<instance>` there." instance;
  providerPort =
    default
      "TCP port of `providers.cert`. The other kinds have the ports after it: config the first, file the second, oidc the third, jwt the fourth, federation the fifth, secret the sixth, database the seventh, token the eighth, tls the ninth, git the eleventh, ssh the twelfth."
      4600
      (between 1 65523 "a port with twelve after it");
  forwarderPort = default "Port of the forwarder, for UDP and TCP." 4610 port;
  transport =
    of
      "Transport between this forwarder and others: `auto` is QUIC, and TLS over TCP where UDP does not pass."
      (enum [
        "auto"
        "quic"
        "tcp"
      ]);
  drainTimeout =
    default
      "Seconds for which the old process of the forwarder keeps its connections, beside the new one, after an upgrade."
      600
      seconds;
}
