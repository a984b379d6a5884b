# The record of a service. It includes the attributes for each kind of need that a service can have.
let
  inherit (builtins) attrValues foldl';
  inherit (import ./types)
    atLeastOne
    attrsOf
    between
    default
    enum
    listOf
    named
    of
    record
    required
    ;
  inherit (import ./formats)
    account
    alias
    date
    fact
    flag
    groupPath
    name
    port
    publicName
    recipient
    replicas
    strings
    tags
    tlsName
    upstream
    ;
  kinds = import ../kinds;
  limits = import ./limits.nix;
in
record "a service" (
  {
    host = of "Host on which the service runs." name;
    hosts = of "Hosts on which the service runs under one identity. Callers are spread over them." strings;
    replicas =
      default
        "Number of hosts on which the service runs, instead of their names. `placement` chooses them. `\"all\"` is every server that fits."
        null
        replicas;
    placement = of "Hosts on which replicas may run, and hosts that are preferred." (
      record "placement" {
        strategy =
          of
            "`minimize-movement`: rendezvous hashing, so that a host that comes or goes moves only its share. `balanced`: the hosts that run least. `locality`: the hosts closest to `near`."
            (enum [
              "minimize-movement"
              "balanced"
              "locality"
            ]);
        near = of "Hosts to be near, judged by their groups. Needs `strategy = \"locality\"`." strings;
        group = of "Only hosts in this group." groupPath;
        tags = of "Only hosts with all of these." tags;
        capabilities = of "Only hosts with all of these." tags;
        apart = of "Services that must not run on its hosts." strings;
        apartByGroup = of "Services that must not run in the groups of its hosts." strings;
        spread =
          of
            "`even`: over as many groups as there are, the outer ones first. `one-per-group`: no two in one group."
            (enum [
              "none"
              "even"
              "one-per-group"
            ]);
        pins = of "Hosts that run it before all others that fit, as long as they take services." strings;
        size = default "How much of the `capacity` of a host it needs." 1 (between 1 1000 "a size");
      }
    );
    port = default "Port at which the service listens on 127.0.0.1 of its host." null port;
    listenPort = default "Port that callers use. By default the same as `port`." null port;
    upstream = of "Where the service listens if that is not 127.0.0.1: `host:port`, also of a machine outside the cluster, or `unix:/path`." upstream;
    ports = of "Several named ports at one address, instead of `port`. Each is a number or a record." (
      import ./port.nix
    );
    publicPorts = of "Ports at which strangers reach a service with `visibility = \"public\"`, over TCP or UDP, on every host with an ingress that reaches it: `publicPorts.smtp = 25;`. The names are those of `ports`; for a service with one port, any name." (
      import ./publicport.nix
    );
    protocol =
      of
        "Protocol of the service. All but `udp` are carried as `tcp`. People open `ssh`, `rdp` and `vnc` with `flor remote`, and each of their connections is a session that operators see and end. Callers of `ssh` know the host keys of its hosts, and `roles.<name>.logins` says who may log in there."
        (enum [
          "tcp"
          "http"
          "ssh"
          "rdp"
          "vnc"
          "udp"
        ]);
    record =
      of
        "Records the SSH sessions at a service with `protocol = \"ssh\"`, on the hosts where they run. By default no session is recorded."
        (
          record "a recording" {
            recipients =
              required "Public keys of age. Their owners can read the recordings, and hosts cannot."
                "[ \"age1…\" ]"
                (atLeastOne "write the keys of those who read recordings, or take record out" recipient);
            days = default "Days for which a host keeps a recording." 90 (between 1 3650 "days");
          }
        );
    transport = of "Transport between the forwarders of callers and its own, as for hosts." (enum [
      "auto"
      "quic"
      "tcp"
    ]);
    identity =
      of
        "How the service learns who calls: `proxy-v2`, by a PROXY protocol header before the bytes of each connection; `http`, by headers of each request."
        (enum [
          "none"
          "proxy-v2"
          "http"
        ]);
    accessLog =
      of
        "Connections that its hosts log when they end, with the caller: `sampled`, one in a hundred; `full`, all."
        (enum [
          "off"
          "sampled"
          "full"
        ]);
    visibility =
      of "`cluster`: roles lead to it. `public`: an ingress must reach it as well. `host`: it is not published, and nobody reaches it."
        (enum [
          "cluster"
          "public"
          "host"
        ]);
    tlsName = of "Public name of a service with `visibility = \"public\"`, at which strangers reach it through an ingress." tlsName;
    tlsAliases =
      of
        "More public names. `\"*.apps.example.org\"` is every name with one label before `apps.example.org`; an exact name takes precedence."
        (listOf publicName);
    ingress = of "Rules for strangers at the public names: networks, paths, headers and limits. Needs `tlsName`." (
      import ./ingress.nix
    );
    aliases =
      of
        "More names inside the cluster. `\"docs\"` is `docs.demo.flor.rete`. `\"*.apps\"`, over SOCKS5 only, is every name with one label before `apps.demo.flor.rete`; an exact name takes precedence."
        (listOf alias);
    scope =
      of
        "`cluster`: one service on all of its hosts. `node`: a service of its own on each host, such as `wiki.forge.demo.flor.rete`. `both`: reached by either name, and `wiki.demo.flor.rete` is any of them."
        (enum [
          "cluster"
          "node"
          "both"
        ]);
    user = of "Account that the service runs as. It acts under the identity of the service, owns the files delivered for it, and must own the socket at the upstream." account;
    facts = of "Public values that configurations of other hosts read from `topology.services.<name>.facts`, such as public keys, DNS records and ports. Never a secret." (
      named { what = "fact"; } fact
    );
    roles = of "Roles of the service: what it reaches as a caller." strings;
    until = of "Roles up to a time, as for users." (attrsOf date);
    workloadApi =
      of
        "Processes that act under its identity (its `user`, or `callers` of its hosts) get its certificate with the key from the SPIFFE Workload API."
        flag;
    limits = limits 65536 "Limits for all callers together, at each of its hosts.";
  }
  // foldl' (all: k: all // k.service or { }) (import ../kinds/own.nix).service (attrValues kinds)
)
