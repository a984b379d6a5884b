// Package tcpstream carries streams between forwarders over TLS 1.3 on TCP. It is used where QUIC
// cannot be used. Each connection carries one stream at a time. After a stream has ended, normally
// or by a reset, its connection is reused for the next stream. Package wire defines the frames.
//
// Reading from a stream reads the connection directly, without another goroutine or copy. When a
// stream is no longer read, this side reads and discards the remaining data until the other side
// confirms that the stream has ended.
package tcpstream
