package datagram

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// BufferSize is the size of receive buffers requested from the kernel, which grants at most
// net.core.rmem_max. Bursts wait in these buffers.
const BufferSize = 4 << 20

// Socket is a connected UDP socket that never blocks on sending and holds no buffer while it waits
// to receive.
type Socket struct {
	conn *net.UDPConn
	raw  syscall.RawConn
}

// NewSocket returns a Socket that owns c.
func NewSocket(c *net.UDPConn) (*Socket, error) {
	c.SetReadBuffer(BufferSize)
	raw, err := c.SyscallConn()
	return &Socket{c, raw}, err
}

// Close closes the socket and ends Receive.
func (s *Socket) Close() { s.conn.Close() }

// Send sends a datagram, or drops it if the kernel does not accept it at once. The error may belong
// to an earlier datagram, such as ECONNREFUSED if no process is at the other end.
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

// Receive waits for a datagram and passes it to take, which must not keep it. For errors see Send.
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
