// Package datagram carries the datagrams of UDP sessions between a local UDP socket and a QUIC
// connection to another forwarder (package wire defines the format). It never blocks. If a queue is
// full, it drops the datagram, as UDP allows, and counts it.
package datagram
