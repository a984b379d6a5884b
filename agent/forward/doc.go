// Package forward is the forwarder of one host: the process that carries connections between the
// programs of the host and services on other hosts. It follows two kinds of files that activation
// keeps on disk: the accepted manifest and the delivered SVIDs. When these files change, it updates
// its three parts:
//
//   - package inbound serves the services that the host publishes;
//   - package outbound connects local programs to the services that they may reach;
//   - package transport provides the connections between forwarders.
//
// Run contains a single loop. Each pass of it reads all files into a snapshot and applies the
// snapshot. The first start, a change and a repair take the same path. A lost notification
// therefore costs one poll interval. The loop also feeds systemd's watchdog.
//
// # Goroutines
//
// Every goroutine has an owner, which waits for the goroutine to end:
//
//   - Run: one for the loop; those of the servers for status, metrics, whois, ping and sessions;
//     one that exports traces; one that sheds connections while memory is short; one that waits for
//     the next process. They end with the context.
//   - outbound.Server.Apply: one for each local listener. Each local connection has one that copies
//     to it, one that opens its stream, and one that sends until the answer. Each UDP session has
//     two. Close gives connections two seconds to end.
//   - inbound.Server.Apply: one that accepts QUIC and one that accepts TCP; one for each peer
//     connection; for each stream one that copies from it and one that connects to the service. A
//     stream also has those of net/http if its service learns callers from headers. A handshake
//     over TCP has one, for five seconds at most.
//   - transport.Pool: one round of dials for each target, ten seconds at most; one that measures
//     connections over QUIC; one that follows routes; one for each attempt to migrate a connection
//     or to try QUIC again. A connection over QUIC has one that waits for wire.Leave. After its
//     first check it has two more for its checks. Close cuts all of them short.
//   - transport.Uplink: one that keeps the connection and one that follows routes. A connection
//     over QUIC has one that accepts streams and one that waits for wire.Leave. Over TCP there is
//     one for each connection that waits for a stream, and one for each connection that carries a
//     stream. A handshake with a caller has one, for five seconds at most. Close waits for all.
//   - relay: each relayed stream has two, which end with the stream.
//   - datagram: each connection that has carried a UDP session has two.
//   - tcpstream: each stream that nobody reads any more has one, which settles the stream within
//     five seconds.
//   - splice: one for all idle connections. A stream that has sent nothing for half a second gives
//     its copying goroutine back. It gets another one with its next bytes.
package forward
