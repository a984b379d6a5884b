// Package tcpstream carries streams over TLS 1.3 on TCP, one at a time on each connection
// (package wire has the frames). A stream that has ended, in order or by a reset, leaves its
// connection to the next.
//
// Whoever reads a stream reads the connection: no goroutine and no copy stand in between.
// When nobody reads the stream any more, the connection is read on until the other side
// agrees that it is over.
package tcpstream
