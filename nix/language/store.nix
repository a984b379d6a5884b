# The state of providers: a file of each process, or a store that their hosts share.
let
  inherit (import ./types)
    between
    default
    enum
    of
    record
    ;
  inherit (import ./formats) strings;
in
of "where providers keep their state" (
  record "the store" {
    kind = of "`etcd`: the hosts of all providers share a cluster of it, so that several may provide the same; otherwise each process has a file of its own" (enum [
      "file"
      "etcd"
    ]);
    hosts = of "where its members run, each a host that provides something: three, or five" strings;
    from = of "hosts whose files have the state now, which moves into the store: of each kind the first that provides it" strings;
    port =
      default "TCP, at which members are called by providers; the next one is for each other" 4620
        (between 1 65534 "a port");
    keyLifetime =
      default "days after which the sealing key of replicas is replaced; never with 0" 90
        (between 0 3650 "days");
  }
)
