package main

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// load puts a forwarder under load with four programs. Each program opens one connection after the
// other.
type load struct {
	done, failed atomic.Int64
	stop         chan struct{}
	programs     sync.WaitGroup
}

func newLoad(t *testing.T, addr string) *load {
	l := &load{stop: make(chan struct{})}
	for range 4 {
		l.programs.Go(func() {
			for {
				select {
				case <-l.stop:
					return
				default:
				}
				if err := exchange(addr); err != nil {
					t.Logf("after %d: %v", l.done.Load(), err)
					l.failed.Add(1)
				}
				l.done.Add(1)
			}
		})
	}
	return l
}

// more waits until the given number of further connections have ended.
func (l *load) more(t *testing.T, n int64) {
	t.Helper()
	n += l.done.Load()
	kit.Eventually(t, "connections", func() bool { return l.done.Load() >= n })
}

// end stops the load and checks that no connection has failed.
func (l *load) end(t *testing.T) {
	t.Helper()
	close(l.stop)
	l.programs.Wait()
	if l.failed.Load() > 0 {
		t.Errorf("%d of %d connections failed", l.failed.Load(), l.done.Load())
	}
}

// exchange opens a connection, sends a request and expects the answer.
func exchange(addr string) error {
	c, err := net.Dial("tcp", addr)
	if err != nil {
		return err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(kit.Patience))
	return agenttest.Ping(c)
}
