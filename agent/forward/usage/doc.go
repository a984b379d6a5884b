// Package usage limits the memory that connections between forwarders use. It counts the unread
// bytes of each connection, and closes the connections of the caller that holds most of them while
// memory is short. It also pools the buffers for forwarded bytes.
package usage
