package datagram

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// BufferSize is the size in bytes of the receive buffer that a socket requests from the kernel. The
// buffer absorbs bursts. The kernel grants at most net.core.rmem_max.
const BufferSize = 4 << 20

// Socket is a connected UDP socket. Send never blocks, and Receive holds no buffer while it waits
// for a datagram.
type Socket struct {
	conn *net.UDPConn
	raw  syscall.RawConn
}

// NewSocket returns a Socket that uses the connection c and enlarges its receive buffer. Closing
// the Socket closes c.
func NewSocket(c *net.UDPConn) (*Socket, error) {
	c.SetReadBuffer(BufferSize)
	raw, err := c.SyscallConn()
	return &Socket{c, raw}, err
}

// Close closes the socket. A call to Receive then returns.
func (s *Socket) Close() { s.conn.Close() }

// Send sends a datagram, or drops it if the kernel does not accept it at once. The error may belong
// to an earlier datagram. For example, the kernel reports ECONNREFUSED if an earlier datagram
// reached no process.
func (s *Socket) Send(payload []byte) error {
	var err error
	waited := s.raw.Write(func(fd uintptr) bool {
		_, err = unix.Write(int(fd), payload)
		return true
	})
	if waited != nil {
		return waited
	}
	return err
}

// Receive waits for a datagram and calls take with its payload. The function take must not keep the
// payload. As with Send, the error may belong to an earlier datagram.
func (s *Socket) Receive(take func(payload []byte)) error {
	var b []byte
	var n int
	var err error
	waited := s.raw.Read(func(fd uintptr) bool {
		b = buffers.get()
		if n, err = unix.Read(int(fd), b); err == nil {
			take(b[:n])
		}
		buffers.put(b)
		return err != unix.EAGAIN && err != unix.EINTR
	})
	if waited != nil {
		return waited
	}
	return err
}
