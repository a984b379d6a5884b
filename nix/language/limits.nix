# The record that limits what a service, a user or a relay may use.
let
  inherit (import ./types)
    between
    default
    of
    record
    ;
in
# A limit on connections. Its maximum is the forwarder's own limit.
# Int -> String -> Field
most: doc:
of doc (
  record "limits" {
    connections =
      default "TCP connections and UDP sessions that are open at a time. More are refused." null
        (between 1 most "a number of connections");
    opensPerSecond =
      default
        "TCP connections and UDP sessions that begin in a second, which is also the largest burst. More are refused."
        null
        (between 1 100000 "a number of opens");
    bytesPerSecond =
      default
        "Bytes per second in both directions together. TCP connections are slowed down, and datagrams beyond it are dropped."
        null
        (between 1000 1000000000000 "a number of bytes");
  }
)
