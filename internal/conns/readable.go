package conns

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// WaitReadable waits until the peer of a connection sends data or closes the connection. Data stay
// unread. If the read deadline of the connection passes first, the error is os.ErrDeadlineExceeded.
//
// A goroutine that waits here has a smaller stack than one in the method Read of a TLS connection.
// Data that TLS has received before and not returned yet are not noticed. If the connection has no
// socket, as in tests, WaitReadable reads and loses one byte.
func WaitReadable(c net.Conn) error {
	for {
		over, ok := c.(interface{ NetConn() net.Conn })
		if !ok {
			break
		}
		c = over.NetConn()
	}
	s, ok := c.(syscall.Conn)
	if !ok {
		_, err := c.Read(make([]byte, 1))
		return err
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return err
	}
	return raw.Read(arrived)
}

// arrived reports whether a socket has data, or its end, to read.
func arrived(fd uintptr) bool {
	poll := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN | unix.POLLRDHUP}}
	for {
		n, err := unix.Poll(poll, 0)
		if err != unix.EINTR {
			return n > 0 || err != nil
		}
	}
}
