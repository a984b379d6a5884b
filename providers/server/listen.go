package server

import (
	"errors"
	"net"
	"sync"
)

// Listen returns one listener that accepts connections at several TCP addresses of the form
// host:port or :port. If it cannot listen at one of them, it returns an error.
func Listen(addresses []string) (net.Listener, error) {
	s := &several{accepted: make(chan accepted), closed: make(chan struct{})}
	for _, a := range addresses {
		l, err := net.Listen("tcp", a)
		if err != nil {
			s.Close()
			return nil, err
		}
		s.all = append(s.all, l)
		s.accepting.Go(func() { s.accept(l) })
	}
	if len(s.all) == 0 {
		return nil, errors.New("no address to listen on")
	}
	return s, nil
}

type several struct {
	all       []net.Listener
	accepted  chan accepted
	accepting sync.WaitGroup
	once      sync.Once
	closed    chan struct{}
}

type accepted struct {
	conn net.Conn
	err  error
}

func (s *several) accept(l net.Listener) {
	for {
		conn, err := l.Accept()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		select {
		case s.accepted <- accepted{conn, err}:
		case <-s.closed:
			if err == nil {
				conn.Close()
			}
			return
		}
	}
}

func (s *several) Accept() (net.Conn, error) {
	select {
	case a := <-s.accepted:
		return a.conn, a.err
	case <-s.closed:
		return nil, net.ErrClosed
	}
}

func (s *several) Close() error {
	s.once.Do(func() {
		close(s.closed)
		for _, l := range s.all {
			l.Close()
		}
	})
	s.accepting.Wait()
	return nil
}

// Addr returns the first of the addresses.
func (s *several) Addr() net.Addr { return s.all[0].Addr() }
