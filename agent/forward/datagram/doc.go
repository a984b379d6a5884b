// Package datagram carries the datagrams of UDP sessions over QUIC connections (package wire), and
// sends and receives them at a local socket. It never blocks: a datagram that finds a queue full is
// dropped, as UDP allows, and counted.
package datagram
