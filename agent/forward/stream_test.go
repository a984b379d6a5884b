package forward_test

import (
	"errors"
	"io"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// open makes a tunnel and returns both TCP ends.
func open(t *testing.T) (process, service *net.TCPConn) {
	t.Helper()
	ends := make(chan *net.TCPConn)
	closed := make(chan struct{})
	t.Cleanup(func() { close(closed) })
	c := newCluster(t, agenttest.Upstream(t, func(c *net.TCPConn) {
		ends <- c
		<-closed
	}))
	c.start(t)
	process = dial(t, c.Local)
	select {
	case service = <-ends:
	case <-time.After(kit.Patience):
		t.Fatal("no connection at the upstream")
	}
	service.SetDeadline(time.Now().Add(kit.Patience))
	return process, service
}

// ways runs a test with the process as the first end, then with the service.
func ways(t *testing.T, f func(t *testing.T, a, b *net.TCPConn)) {
	t.Run("from the process", func(t *testing.T) { p, s := open(t); f(t, p, s) })
	t.Run("from the service", func(t *testing.T) { p, s := open(t); f(t, s, p) })
}

// rst ends c with a reset.
func rst(c *net.TCPConn) {
	c.SetLinger(0)
	c.Close()
}

func send(t *testing.T, to, from *net.TCPConn, text string) {
	t.Helper()
	if _, err := from.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	b := make([]byte, len(text))
	if _, err := io.ReadFull(to, b); err != nil || string(b) != text {
		t.Fatalf("got %q, %v, want %q", b, err, text)
	}
}

func wantEOF(t *testing.T, c *net.TCPConn) {
	t.Helper()
	if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
		t.Fatalf("got %d bytes and %v, want the end of data", n, err)
	}
}

func TestServiceSpeaksFirst(t *testing.T) {
	process, service := open(t)
	send(t, process, service, "220 ready")
}

func TestHalfClose(t *testing.T) {
	ways(t, func(t *testing.T, a, b *net.TCPConn) {
		send(t, b, a, "question")
		a.CloseWrite()
		wantEOF(t, b)
		send(t, a, b, "answer")
		send(t, a, b, "more")
		b.CloseWrite()
		wantEOF(t, a)
	})
}

func TestReset(t *testing.T) {
	ways(t, func(t *testing.T, a, b *net.TCPConn) {
		send(t, b, a, "hello")
		send(t, a, b, "hello")
		rst(a)
		wantReset(t, b)
	})
}

// TestResetAfterHalfClose checks that the end that still sends learns of a reset without having to
// write.
func TestResetAfterHalfClose(t *testing.T) {
	ways(t, func(t *testing.T, a, b *net.TCPConn) {
		send(t, b, a, "question")
		a.CloseWrite()
		wantEOF(t, b)
		rst(a)
		kit.Eventually(t, "the reset", func() bool {
			raw, err := b.SyscallConn()
			if err != nil {
				t.Fatal(err)
			}
			var soerr int
			raw.Control(func(fd uintptr) { soerr, _ = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_ERROR) })
			return soerr != 0
		})
	})
}

// TestIdle checks that bytes, ends and resets pass on a connection after it was idle, repeatedly.
func TestIdle(t *testing.T) {
	ways(t, func(t *testing.T, a, b *net.TCPConn) {
		for range 2 {
			send(t, b, a, "question")
			send(t, a, b, "answer")
			kit.Eventually(t, "both ends to be idle", func() bool {
				b := make([]byte, 1<<20)
				stacks := string(b[:runtime.Stack(b, true)])
				overTCP := strings.Contains(stacks, "tcpstream.(*Stream).Peek")
				return !strings.Contains(stacks, "carryFromLocal") && (overTCP || !strings.Contains(stacks, "carryToLocal"))
			})
		}
		a.CloseWrite()
		wantEOF(t, b)
		send(t, a, b, "more")
		rst(b)
		wantReset(t, a)
	})
}

// TestResetByTheOtherHalf ends the direction of a, then resets b.
func TestResetByTheOtherHalf(t *testing.T) {
	ways(t, func(t *testing.T, a, b *net.TCPConn) {
		send(t, b, a, "question")
		a.CloseWrite()
		wantEOF(t, b)
		rst(b)
		wantReset(t, a)
	})
}

// TestResetWhileBlocked writes at a until writes block, then resets b.
func TestResetWhileBlocked(t *testing.T) {
	ways(t, func(t *testing.T, a, b *net.TCPConn) {
		failed := make(chan error, 1)
		var written atomic.Int64
		go func() {
			buf := make([]byte, 1<<14)
			for {
				n, err := a.Write(buf)
				if written.Add(int64(n)); err != nil {
					failed <- err
					return
				}
			}
		}()
		kit.Settled(written.Load) // buffers are full
		rst(b)
		if err := <-failed; !errors.Is(err, syscall.ECONNRESET) && !errors.Is(err, syscall.EPIPE) {
			t.Fatalf("write failed with %v, want a reset", err)
		}
	})
}

// TestEndNeverComesAsReset checks that nothing is lost if both sides close cleanly.
func TestEndNeverComesAsReset(t *testing.T) {
	ways(t, func(t *testing.T, a, b *net.TCPConn) {
		const size = 4 << 20
		go func() {
			a.Write(make([]byte, size))
			a.CloseWrite()
		}()
		n, err := io.Copy(io.Discard, b)
		if n != size || err != nil {
			t.Fatalf("got %d bytes of %d, %v", n, size, err)
		}
		b.Close()
		wantEOF(t, a)
	})
}
