package forward_test

import (
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
)

// openUnix is like open for a service on a Unix socket.
func openUnix(t *testing.T) (process *net.TCPConn, service *net.UnixConn) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "service.sock")
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	c := newCluster(t, "unix:"+path)
	c.start(t)
	process = dial(t, c.Local)
	l.SetDeadline(time.Now().Add(kit.Patience))
	service, err = l.AcceptUnix()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { service.Close() })
	service.SetDeadline(time.Now().Add(kit.Patience))
	return process, service
}

type halfCloser interface {
	net.Conn
	CloseWrite() error
}

func TestUnixUpstream(t *testing.T) {
	say := func(to, from net.Conn, text string) {
		t.Helper()
		if _, err := from.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, len(text))
		if _, err := io.ReadFull(to, b); err != nil || string(b) != text {
			t.Fatalf("got %q, %v, want %q", b, err, text)
		}
	}
	eof := func(c net.Conn) {
		t.Helper()
		if n, err := c.Read(make([]byte, 1)); n != 0 || err != io.EOF {
			t.Fatalf("got %d bytes and %v, want the end of data", n, err)
		}
	}
	halfClose := func(a, b halfCloser) {
		say(b, a, "question")
		a.CloseWrite()
		eof(b)
		say(a, b, "answer")
		say(a, b, "more")
		b.CloseWrite()
		eof(a)
	}
	t.Run("half-close from the process", func(t *testing.T) { p, s := openUnix(t); halfClose(p, s) })
	t.Run("half-close from the service", func(t *testing.T) { p, s := openUnix(t); halfClose(s, p) })
	t.Run("all arrives", func(t *testing.T) {
		p, s := openUnix(t)
		const size = 4 << 20
		go func() {
			s.Write(make([]byte, size))
			s.Close()
		}()
		if n, err := io.Copy(io.Discard, p); n != size || err != nil {
			t.Fatalf("got %d bytes of %d, %v", n, size, err)
		}
	})
	t.Run("service drops what it was sent", func(t *testing.T) {
		p, s := openUnix(t)
		say(p, s, "ready")
		if _, err := p.Write(make([]byte, 1<<20)); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
		s.Close()
		wantReset(t, p)
	})
	t.Run("process is reset", func(t *testing.T) {
		p, s := openUnix(t)
		say(s, p, "hello")
		rst(p)
		eof(s) // a Unix socket knows no reset
	})
}

func TestUnixUpstreamIsGone(t *testing.T) {
	c := newCluster(t, "unix:"+filepath.Join(t.TempDir(), "none.sock"))
	c.start(t)
	wantRefused(t, c.Local)
	refusals(t, c.Ursula, "upstream-unreachable", 1)
}
