package kit

import (
	"context"
	"net"
	"sync"
)

// Pipe is a net.Listener whose connections are in memory. Use it in tests in a synctest bubble,
// where real connections do not work.
type Pipe struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

// NewPipe returns a Pipe that accepts connections.
func NewPipe() *Pipe { return &Pipe{conns: make(chan net.Conn), closed: make(chan struct{})} }

// Dial opens a connection to the Pipe.
func (p *Pipe) Dial(ctx context.Context) (net.Conn, error) {
	here, there := net.Pipe()
	select {
	case p.conns <- there:
		return here, nil
	case <-p.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (p *Pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *Pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *Pipe) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }
