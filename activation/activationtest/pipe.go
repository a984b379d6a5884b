package activationtest

import (
	"context"
	"net"
	"sync"
)

// pipe is a listener in memory, so that time can be virtual (testing/synctest).
type pipe struct {
	conns  chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newPipe() *pipe { return &pipe{conns: make(chan net.Conn), closed: make(chan struct{})} }

func (p *pipe) dial(ctx context.Context) (net.Conn, error) {
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

func (p *pipe) Accept() (net.Conn, error) {
	select {
	case c := <-p.conns:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipe) Addr() net.Addr { return &net.UnixAddr{Name: "memory", Net: "pipe"} }
