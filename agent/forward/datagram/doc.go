// Package datagram carries the datagrams of UDP sessions between a local UDP socket and a QUIC
// connection to another forwarder. Package wire defines the format. Sending never blocks: if a
// queue is full, the package drops the datagram, as UDP allows, and counts the loss.
package datagram
