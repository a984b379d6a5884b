package splice

import (
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// maxUnsent bounds what waits in the kernel for a peer that does not read. What is on its
// way to one that does is not bounded by it.
const maxUnsent = 64 << 10

// boundUnsent does so, where the kernel can: a Unix socket has a bound of its own.
func boundUnsent(c syscall.Conn) {
	if raw, err := c.SyscallConn(); err == nil {
		_ = raw.Control(func(fd uintptr) { _ = unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_NOTSENT_LOWAT, maxUnsent) })
	}
}

// awaitReset waits, after the end of data, until the connection is closed. The
// error is nil when it ended in order.
func awaitReset(c Conn, raw syscall.RawConn) (err error) {
	if err := c.SetReadDeadline(time.Time{}); err != nil {
		return nil // closed by the other direction, which knows why
	}
	werr := raw.Read(func(fd uintptr) bool {
		soerr, e := unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_ERROR)
		if e != nil || soerr != 0 {
			err = unix.ECONNRESET
			return true
		}
		// Hang-up: the peer has closed, or both directions have ended.
		poll := []unix.PollFd{{Fd: int32(fd)}}
		_, e = unix.Poll(poll, 0)
		return e == nil && poll[0].Revents&unix.POLLHUP != 0
	})
	if werr != nil {
		return nil // so is this
	}
	return err
}
