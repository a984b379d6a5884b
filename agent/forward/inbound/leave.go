package inbound

import (
	"context"
	"os"
	"sync"
	"time"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
)

const (
	// linger is the time for which a connection stays open after the peer was told to leave it and
	// its last stream has ended. Closing it at once would discard data in flight.
	linger = 2 * time.Second
	// arriving is the time that handshakes have to complete after they have begun.
	arriving = 5 * time.Second
)

// Offer returns open files for the next process of the forwarder, which replaces this one. With
// them, it can pass the packets of existing connections on to this process. The listening sockets
// are not included. The caller must close the files.
func (s *Server) Offer() (files []*os.File, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, r := range s.running {
		some, err := r.ln.Offer()
		files = append(files, some...)
		if err != nil {
			return files, err
		}
	}
	return files, nil
}

// Drain stops accepting connections, because the next process of the forwarder accepts them. It
// asks the hosts at the other end of existing connections to open new ones for new streams. Open
// streams continue. After Drain, Apply opens no listeners.
func (s *Server) Drain() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.draining.Store(true)
	for _, r := range s.running {
		r.ln.Drain()
	}
	s.live.Range(func(c, _ any) bool {
		c.(*served).leave()
		return true
	})
}

// Wait waits until the server has no connections left, or until ctx ends. It must be called after
// Drain.
func (s *Server) Wait(ctx context.Context) {
	select {
	case <-time.After(arriving):
		s.connections.Wait(ctx)
	case <-ctx.Done():
	}
}

// served is an accepted connection, with the number of its open streams.
type served struct {
	in *transport.Incoming

	mu      sync.Mutex
	streams int
	left    bool
	closed  bool
	idle    *time.Timer
}

// begin counts a new stream. It returns false if the connection was closed; the stream was then not
// served.
func (c *served) begin() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return false
	}
	c.streams++
	if c.idle != nil {
		c.idle.Stop()
	}
	return true
}

func (c *served) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.streams--
	c.wait()
}

// leave tells the peer to open new streams on another connection. If the peer does not support this
// message, its connection is closed as soon as it has no streams.
func (c *served) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left {
		return
	}
	c.left = true
	c.in.Leave()
	c.wait()
}

// wait closes the connection after a delay if it still has no streams. Connections over TCP close
// themselves. The caller must hold the lock.
func (c *served) wait() {
	if !c.left || c.streams > 0 || c.in.Transport != document.OverQUIC {
		return
	}
	c.idle = time.AfterFunc(linger, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.streams == 0 && !c.closed {
			c.closed = true
			c.in.Close(wire.Stopping)
		}
	})
}
