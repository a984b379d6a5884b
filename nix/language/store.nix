# The record that says where providers keep their state: each process in its own file, or all of
# them in a store that their hosts share.
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
of "State store of the providers." (
  record "the store" {
    kind = of "`etcd`: the hosts of all providers share an etcd cluster, so that several may provide the same kind. `file`: each process has a file of its own." (enum [
      "file"
      "etcd"
    ]);
    hosts = of "Hosts on which its members run, three or five. Each also provides something." strings;
    from = of "Hosts whose files have the state now. It moves into the store, for each kind from the first of them that provides it." strings;
    port =
      default
        "TCP port at which providers call the members. Members call each other at the port after it."
        4620
        (between 1 65534 "a port");
    keyLifetime =
      default "Days after which the sealing key of replicas is replaced. 0 means never." 90
        (between 0 3650 "days");
  }
)
