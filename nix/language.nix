# The topology language: every record, its attributes, what they are for, their types and
# defaults. reference.md is written from it.
let
  inherit (builtins)
    attrNames
    attrValues
    filter
    foldl'
    intersectAttrs
    isAttrs
    isString
    listToAttrs
    map
    mapAttrs
    tryEval
    ;
  inherit (import ./types.nix) attrsOf between default enum listOf named of oneOrMore record required scalar;
  inherit (import ./formats.nix)
    account
    address
    bind
    caller
    clusterName
    groupPath
    loopback
    instance
    name
    pem
    port
    replicas
    signingKey
    sshKey
    string
    strings
    tags
    tlsName
    trustDomain
    upstream
    word
    ;
  kinds = import ./kinds;

  host = record "a host" {
    # A host that nobody calls, such as a laptop, needs no address.
    address = of "where others call this host, from anywhere: IP addresses and DNS names, tried one beside the other. Behind a NAT that forwards another port to the forwarder, with that port" (oneOrMore address);
    networks = of "networks that this host is on, and where the others on them call it, which they try first: `networks.lan = \"10.0.0.5\";`. On one where nobody calls it: `[ ]`" (named { what = "network"; } (oneOrMore address));
    bind = of "addresses of its own on which forwarder and provider listen; all, unless written" (oneOrMore bind);
    sshHostKey = required "public half of the key that proves the host when it enrols: the line of /etc/ssh/ssh_host_ed25519_key.pub" "\"ssh-ed25519 AAAA…\"" sshKey;
    kind = of "services with replicas are placed on servers alone" (enum [ "server" "device" ]);
    system = default "what it runs: programs for anything else are not bundled, and a NixOS host that is another is a fault" null (enum [ "x86_64-linux" "aarch64-linux" ]);
    deploy = of "how new documents arrive: from providers.config, or with the host's own system" (enum [ "network" "closure" ]);
    group = of "where it belongs in `hostGroups`, `\"eu/fra\"`: it has what `hostGroups.eu` and `hostGroups.\"eu/fra\"` have" groupPath;
    capabilities = of "what it can do; roles and providers may require it. `ingress`: it takes in strangers" tags;
    tags = of "words for placement" tags;
    users = of "who may act on this host: it gets their certificates" strings;
    roles = of "of the node, besides `node`" strings;
    callers = of "which accounts (names, or uids as numbers) act under an identity of this host: `\"node\"`, `\"user/<name>\"`, `\"service/<name>\"`" (attrsOf (listOf caller));
    loopback = of "range of its local listeners" loopback;
    instance = of "for a host that is a member of another cluster too: this one has directories, units and accounts called `florete_<instance>` there" instance;
    providerPort = default "TCP port where it issues certificates; its other kinds of provider have the ports after that: config the first, file the second, oidc the third" 4600 (between 1 65526 "a port with nine after it");
    forwarderPort = default "UDP port of its forwarder" 4610 port;
  };

  service = record "a service" ({
    host = of "where it runs" name;
    hosts = of "where it runs, on several: one identity, callers are spread over them" strings;
    replicas = default "on how many hosts it runs, instead of saying which; `placement` chooses them; `\"all\"`: on each that fits" null replicas;
    placement = of "which hosts replicas may run on, and which are preferred" (record "placement" {
      strategy = of "`minimize-movement`: rendezvous hashing, a host that comes or goes moves only its share; `balanced`: where least runs; `locality`: close to `near`" (enum [ "minimize-movement" "balanced" "locality" ]);
      near = of "hosts to be near to, by their groups; with `locality`" strings;
      group = of "only hosts in this group" groupPath;
      tags = of "only hosts with all of these" tags;
      capabilities = of "only hosts with all of these" tags;
    });
    port = default "where it listens there, on 127.0.0.1" null port;
    listenPort = default "the port callers use; the same as `port` unless written" null port;
    upstream = of "where it listens when that is not 127.0.0.1: `host:port`, also of a machine outside the cluster, or `unix:/path`" upstream;
    protocol = of "what it speaks; `http` is carried as `tcp`" (enum [ "tcp" "http" "udp" ]);
    visibility = of "`public`: an ingress must reach it; `host`: not published, nobody reaches it" (enum [ "cluster" "public" "host" ]);
    tlsName = of "where it is `public`: the name that strangers know it by; every ingress is told" tlsName;
    scope = of "`node`: one service for each of its hosts, `wiki.forge.demo.flor.rete`" (enum [ "cluster" "node" ]);
    user = of "account it runs as: acts under its identity, owns what is delivered for it, and what listens at its upstream" account;
    roles = of "what the service itself may reach" strings;
  } // foldl' (all: k: all // k.service or { }) { } (attrValues kinds));

  provider = kind: of kind.doc (record "a provider" ({
    hosts = required "where it runs, in order of preference" "[ \"host\" ]" strings;
    requires = of "capabilities its hosts must have" tags;
  } // kind.settings));

  acknowledgement = record "an acknowledgement" {
    id = required "of the rule" "\"FL041\"" (word { want = "the id of a rule"; hint = "write for example \"FL041\""; re = "FL[0-9]{3}"; });
    place = required "where it warns, as it says" "\"services.wiki\"" string;
    reason = required "why this is as it should be" "\"…\"" (scalar { want = "a reason"; hint = "say why this is as it should be"; ok = v: isString v && v != ""; });
  };

  # Sets of things with names of their own.
  entries = {
    hosts = named { what = "host"; } host;
    # Needs are named "cert-service-<name>" and "cert-user-<name>": DNS labels too.
    services = named { what = "service"; max = 50; reserved = map (import ./names.nix).provider (attrNames kinds); } service;
    users = named { what = "user"; max = 53; } (record "a user" { roles = of "what the user may reach" strings; });
    roles = named { what = "role"; } (record "a role" {
      services = of "it reaches these" strings;
      serviceGroups = of "it reaches the services in these" strings;
      requires = of "capabilities of the host, when a node or service has this role" tags;
    });
    serviceGroups = named { what = "group"; } strings;
  };

  cluster = record "mkCluster" {
    self = of "the flake: gives `serial` and `rev`" (scalar { want = "a flake"; hint = "pass the flake's own self"; zero = { }; ok = builtins.isAttrs; });
    serial = default "orders versions of a document; `self.lastModified` unless written" null (between 0 9007199254740991 "a serial");
    rev = default "tells people which version it is; `self.rev` or `self.dirtyRev` unless written" null string;
    name = required "of the cluster" "\"demo\"" clusterName;
    trustDomain = required "of its SPIFFE IDs" "\"demo.flor\"" trustDomain;
    trust = of "what hosts trust" (record "trust" {
      roots = of "certificates that hosts trust: paths of PEM files, or PEM text" (listOf pem);
      signingKeys = of "public keys in Nix format that sign documents for the network; needed with `providers.config`" (listOf signingKey);
    });
    hosts = required "machines" "{ … }" entries.hosts;
    hostGroups = of "groups of hosts by path, `\"eu\"`, `\"eu/fra\"`; what they have, their hosts have" (attrsOf (record "a group of hosts" {
      capabilities = of "of its hosts" tags;
      tags = of "of its hosts" tags;
      roles = of "of its nodes" strings;
      users = of "who may act on its hosts" strings;
    }));
    services = of "what is reached" entries.services;
    users = of "people" entries.users;
    roles = of "what their holders reach. `node` and `operator` must be there: every node has `node`, `operator` is given by hand" entries.roles;
    serviceGroups = of "sets of services for roles. `control-plane` and `control-plane-write` must be there" entries.serviceGroups;
    providers = of "who answers needs, by kind" (record "providers" (mapAttrs (_: provider) kinds));
    acknowledge = of "warnings that are as they should be" (listOf acknowledgement);
  };
in
{
  inherit cluster entries;
  inherit (cluster) clean;

  # Faults of shape: { top = [ … ]; hosts.<name> = [ … ]; … }, each looked for once.
  faults = args:
    let
      # What is no set is a fault of the whole.
      sets = if !isAttrs args then { } else
      listToAttrs (filter (p: (tryEval (isAttrs p.value)).value) (attrValues (mapAttrs (name: value: { inherit name value; }) (intersectAttrs entries args))));
    in
    {
      top = cluster.faults "" (if isAttrs args then args // mapAttrs (_: _: { }) sets else args);
    } // mapAttrs (kind: type: mapAttrs (type.entry kind) sets.${kind} or { }) entries;
}
