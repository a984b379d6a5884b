// Package tcpstream carries streams over TLS 1.3 on TCP, one at a time on each connection (package
// wire defines the frames). After a stream has ended, normally or by a reset, its connection is
// reused for the next stream.
//
// Reading a stream reads its connection directly, without another goroutine or copy. When a stream
// is no longer read, its connection is drained until the other side confirms the end of the stream.
package tcpstream
