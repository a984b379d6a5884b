package datagram

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// BufferSize is requested of the kernel for sockets, which grants what net.core.rmem_max
// allows: a burst waits there.
const BufferSize = 4 << 20

// Socket is a connected UDP socket that sends without waiting, and holds no buffer
// while it waits to receive.
type Socket struct {
	conn *net.UDPConn
	raw  syscall.RawConn
}

// NewSocket takes over c.
func NewSocket(c *net.UDPConn) (*Socket, error) {
	c.SetReadBuffer(BufferSize)
	raw, err := c.SyscallConn()
	return &Socket{c, raw}, err
}

// Close ends Receive.
func (s *Socket) Close() { s.conn.Close() }

// Send drops what the kernel does not take at once. The error may be of an earlier
// datagram: ECONNREFUSED when nobody is at the other end.
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

// Receive waits for a datagram and hands it to take, which must not keep it. Errors
// are as with Send.
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
