# The record of a service, with what each kind of need adds to it.
let
  inherit (builtins) attrValues foldl';
  inherit (import ./types)
    attrsOf
    between
    default
    enum
    listOf
    named
    of
    record
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
    host = of "where it runs" name;
    hosts = of "where it runs, on several: one identity, callers are spread over them" strings;
    replicas =
      default
        "on how many hosts it runs, instead of saying which; `placement` chooses them; `\"all\"`: on each that fits"
        null
        replicas;
    placement = of "which hosts replicas may run on, and which are preferred" (
      record "placement" {
        strategy =
          of
            "`minimize-movement`: rendezvous hashing, a host that comes or goes moves only its share; `balanced`: where least runs; `locality`: close to `near`"
            (enum [
              "minimize-movement"
              "balanced"
              "locality"
            ]);
        near = of "hosts to be near to, by their groups; with `locality`" strings;
        group = of "only hosts in this group" groupPath;
        tags = of "only hosts with all of these" tags;
        capabilities = of "only hosts with all of these" tags;
        apart = of "services that run on none of its hosts" strings;
        apartByGroup = of "services that run in none of the groups that its hosts are in" strings;
        spread =
          of
            "`even`: over as many groups as there are, the outer ones first; `one-per-group`: no two in one group"
            (enum [
              "none"
              "even"
              "one-per-group"
            ]);
        pins = of "hosts that have it before all others that fit, as long as they take services" strings;
        size = default "how much of a host's `capacity` it needs" 1 (between 1 1000 "a size");
      }
    );
    port = default "where it listens there, on 127.0.0.1" null port;
    listenPort = default "the port callers use; the same as `port` unless written" null port;
    upstream = of "where it listens when that is not 127.0.0.1: `host:port`, also of a machine outside the cluster, or `unix:/path`" upstream;
    ports = of "several ports instead of one, by name, at one address: each a number or a record" (
      import ./port.nix
    );
    protocol = of "what it speaks; `http` is carried as `tcp`" (enum [
      "tcp"
      "http"
      "udp"
    ]);
    transport = of "what callers' forwarders reach its own over, as with hosts" (enum [
      "auto"
      "quic"
      "tcp"
    ]);
    identity =
      of
        "how it learns who calls: `proxy-v2`, a PROXY protocol header before the bytes of each connection; `http`, headers of each request"
        (enum [
          "none"
          "proxy-v2"
          "http"
        ]);
    accessLog =
      of
        "which of its connections its hosts log once they have ended, with who called: `sampled`, one in a hundred; `full`, all"
        (enum [
          "off"
          "sampled"
          "full"
        ]);
    visibility =
      of "`public`: an ingress must reach it; `host`: not published, nobody reaches it"
        (enum [
          "cluster"
          "public"
          "host"
        ]);
    tlsName = of "where it is `public`: the name that strangers know it by; in the manifest of every ingress" tlsName;
    tlsAliases =
      of
        "other names that strangers know it by; `\"*.apps.example.org\"` is every name with one label before `apps.example.org` that nothing else has"
        (listOf publicName);
    aliases =
      of
        "other names inside the cluster: `\"docs\"` is `docs.demo.flor.rete`, and `\"*.apps\"`, over SOCKS5, every name with one label before `apps.demo.flor.rete` that nothing else has"
        (listOf alias);
    scope =
      of
        "`node`: one service for each of its hosts, `wiki.forge.demo.flor.rete`; `both`: reached by that name too, and `wiki.demo.flor.rete` is any of them"
        (enum [
          "cluster"
          "node"
          "both"
        ]);
    user = of "account it runs as: acts under its identity, owns what is delivered for it, and what listens at its upstream" account;
    facts = of "what other hosts' configurations may read of it, such as public keys, DNS records and ports: `topology.services.<name>.facts`; never a secret" (
      named { what = "fact"; } fact
    );
    roles = of "what the service itself may reach" strings;
    until = of "roles up to a time, as of users" (attrsOf date);
    workloadApi =
      of
        "who acts under its identity (its `user`, or its hosts' `callers`) may have its certificate with the key, by the SPIFFE Workload API"
        flag;
    limits = limits 65536 "what all its callers together may have at each of its hosts";
  }
  // foldl' (all: k: all // k.service or { }) (import ../kinds/own.nix).service (attrValues kinds)
)
