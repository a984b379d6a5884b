package splice

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/conns"
)

// maxUnsent is the maximum number of bytes that wait unsent in the kernel for a peer that does not
// read. It does not include data in flight to a peer that reads.
const maxUnsent = 64 << 10

// boundUnsent limits the unsent data of a TCP connection to maxUnsent, if the kernel supports it. A
// Unix socket has its own limit.
func boundUnsent(c syscall.Conn) {
	_ = conns.Control(c, func(fd int) error { return unix.SetsockoptInt(fd, unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent) })
}

// awaitReset waits, after the end of data, until the connection is closed. It returns nil if the
// connection ended in order, and an error if the peer reset it.
func awaitReset(c Conn, raw syscall.RawConn) (err error) {
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return nil // the other direction has closed the connection and reports the reason
	}
	werr := raw.Read(func(fd uintptr) bool {
		soerr, e := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if e != nil || soerr != 0 {
			err = unix.ECONNRESET
			return true
		}
		// POLLHUP means that the peer has closed, or that both directions have ended.
		poll := []unix.PollFd{{Fd: int32(fd)}}
		_, e = unix.Poll(poll, 0)
		return e == nil && poll[0].Revents&unix.POLLHUP != 0
	})
	if werr != nil {
		return nil // the other direction has closed the connection
	}
	return err
}
