package forward_test

import (
	"io"
	"net"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestStalled checks that connections whose data is not read do not block others of the same caller
// to the same service, in either direction.
func TestStalled(t *testing.T) {
	const stalled = 8
	var moved atomic.Int64
	flood := func(c net.Conn) {
		b := make([]byte, 64<<10)
		for {
			n, err := c.Write(b)
			moved.Add(int64(n))
			if err != nil {
				return
			}
		}
	}
	for name, process := range map[string]func(*net.TCPConn){
		"downloads": func(c *net.TCPConn) { c.Write([]byte("d")) },
		"uploads":   func(c *net.TCPConn) { c.Write([]byte("u")); go flood(c) },
	} {
		t.Run(name, func(t *testing.T) {
			ended := make(chan struct{})
			defer close(ended)
			c := newCluster(t, agenttest.Upstream(t, func(c *net.TCPConn) {
				b := make([]byte, 1)
				io.ReadFull(c, b)
				switch b[0] {
				case 'd':
					flood(c)
				case 'u':
					<-ended
				}
				c.Write(b)
			}))
			c.start(t)
			for range stalled {
				process(dial(t, c.Local))
			}
			t.Logf("%d MB under way", kit.Settled(moved.Load)>>20)
			began := time.Now()
			if !reaches(c.Local) {
				t.Errorf("no answer after %s", time.Since(began))
			}
		})
	}
}
