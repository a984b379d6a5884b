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
	// linger is how long a connection that is left stays without streams: closing it takes
	// back what has not arrived.
	linger = 2 * time.Second
	// arriving is how long a handshake may take that had begun.
	arriving = 5 * time.Second
)

// Offer returns what the next process needs beside the sockets. The caller closes it.
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

// Drain leaves new connections to the next process, and has peers leave those that there
// are. From now on Apply listens nowhere.
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

// Wait returns when a server that drains has no connection, or ctx ends.
func (s *Server) Wait(ctx context.Context) {
	select {
	case <-time.After(arriving):
		s.connections.Wait(ctx)
	case <-ctx.Done():
	}
}

// served is a connection, with how many streams are under way.
type served struct {
	in *transport.Incoming

	mu      sync.Mutex
	streams int
	left    bool
	closed  bool
	idle    *time.Timer
}

// begin counts a stream in, unless the connection was closed: then nothing of it was served.
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

// leave has the peer open further streams elsewhere. One that does not know how to finds the
// connection closed once no stream is under way.
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

// wait closes the connection in a while. Over TCP it closes itself. The caller holds the lock.
func (c *served) wait() {
	if !c.left || c.streams > 0 || c.in.Transport == document.OverTCP {
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
