// Package forward is the forwarder of one host. It follows the files that activation keeps on
// disk, the accepted manifest and the delivered SVIDs, and keeps three things in agreement with
// them: the services that the host publishes (package inbound), the services that its processes
// reach (package outbound), and the connections between forwarders (package transport).
//
// There is one loop, in Run. Each pass reads all files, makes a snapshot and applies it. The first
// start, a change and a repair take the same path, so a lost notification costs one poll. The
// watchdog of systemd is fed by this loop.
//
// # Goroutines
//
// Every goroutine has an owner, which waits for its end:
//
//   - Run: the loop, the servers of status, metrics, whois and ping, the exporter of traces, the one
//     that sheds connections while memory is short, and the one that waits for the next process.
//     They end with the context.
//   - outbound.Server.Apply: one for each local listener. A local connection has one that copies to
//     it, one that opens its stream, and one that sends until the answer. A UDP session has two.
//     Close gives connections two seconds.
//   - inbound.Server.Apply: one that accepts QUIC and one that accepts TCP; one for each peer
//     connection; for each stream one that copies from it and one that connects to the service. A
//     stream whose service learns callers from headers has those of net/http. A handshake over TCP
//     has one, for five seconds at most.
//   - transport.Pool: one round of dials for each target, ten seconds at most; one that measures
//     connections over QUIC; one that follows routes; one for each attempt to migrate or to try QUIC
//     again. Close cuts them short. A connection over QUIC has one that waits for wire.Leave and,
//     once it was checked, two for its checks.
//   - transport.Uplink: one that keeps the connection, one that follows routes; for each connection
//     over QUIC one that accepts streams and one that waits for wire.Leave; over TCP one for each
//     connection that waits for a stream, and one for each that carries one. A handshake with a
//     caller has one, for five seconds at most. Close waits for all.
//   - relay: a stream that is carried on has two, which end with it.
//   - datagram: two for each connection that has carried a UDP session.
//   - tcpstream: one that settles a stream that nobody reads any more, five seconds at most.
//   - splice: one for all idle connections. A stream that has sent nothing for half a second gives
//     its copying goroutine back, and gets another one with its next bytes.
package forward
