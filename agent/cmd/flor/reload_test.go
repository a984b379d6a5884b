package main

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	agentstatus "github.com/florete/florete/agent/status"
	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// reload does the work of systemctl reload. Afterwards the unit has another main process.
func (s *service) reload() {
	s.Helper()
	s.mu.Lock()
	before := s.main
	s.mu.Unlock()
	if err := s.reloadCommand().Run(); err != nil {
		s.Fatalf("reload: %v", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.main == before {
		s.Fatalf("the main process is %d, as before", before)
	}
}

func (s *service) reloadCommand() *exec.Cmd {
	cmd := exec.Command(s.program(), "agent", "reload", "--state", string(s.host.Layout), "--socket", s.host.Socket())
	cmd.Env, cmd.Stderr = s.env(), os.Stderr
	return cmd
}

// transfer is a slow transfer to an echo server. It shows whether a connection survives an upgrade
// without a lost byte.
type transfer struct {
	conn net.Conn
	stop chan struct{}
	done chan error
	sent atomic.Int64
}

func newTransfer(t *testing.T, addr string) *transfer {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	x := &transfer{conn: conn, stop: make(chan struct{}), done: make(chan error, 1)}
	go func() { x.done <- x.run() }()
	return x
}

func (x *transfer) run() error {
	defer x.conn.Close()
	received := sha256.New()
	back := make(chan error, 1)
	go func() {
		_, err := io.Copy(received, x.conn)
		back <- err
	}()
	sent, chunk := sha256.New(), make([]byte, 1<<13)
	for {
		select {
		case <-x.stop:
			x.conn.(*net.TCPConn).CloseWrite()
			if err := <-back; err != nil {
				return err
			}
			if !bytes.Equal(sent.Sum(nil), received.Sum(nil)) {
				return io.ErrUnexpectedEOF
			}
			return nil
		case err := <-back:
			if err == nil {
				err = io.ErrUnexpectedEOF
			}
			return err
		case <-time.After(5 * time.Millisecond):
		}
		rand.Read(chunk)
		sent.Write(chunk)
		n, err := x.conn.Write(chunk)
		x.sent.Add(int64(n))
		if err != nil {
			return err
		}
	}
}

// end ends the transfer and checks that all bytes came back.
func (x *transfer) end(t *testing.T) {
	t.Helper()
	close(x.stop)
	select {
	case err := <-x.done:
		if err != nil {
			t.Errorf("transfer after %d bytes: %v", x.sent.Load(), err)
		}
	case <-time.After(kit.Patience):
		t.Errorf("transfer after %d bytes does not end", x.sent.Load())
	}
}

// TestReload checks that upgrades of the forwarder do not disturb its users. A long transfer and a
// series of short requests must survive three upgrades at each side.
func TestReload(t *testing.T) {
	for _, over := range []document.Transport{document.OverQUIC, document.OverTCP} {
		t.Run(string(over), func(t *testing.T) {
			agenttest.Transport = over
			defer func() { agenttest.Transport = document.AnyTransport }()
			testReload(t)
		})
	}
}

func testReload(t *testing.T) {
	c := agenttest.NewCluster(t, agenttest.Echo(t))
	ursula, laptop := newService(t, c.Ursula), newService(t, c.Laptop)
	ursula.start()
	laptop.start()
	long := newTransfer(t, c.Local)
	load := newLoad(t, c.Local)
	more := func() {
		t.Helper()
		sent := long.sent.Load()
		kit.Eventually(t, "the transfer to go on", func() bool { return long.sent.Load() > sent+1<<16 || len(long.done) > 0 })
		load.more(t, 40)
	}
	more()
	wrong := ursula.reloadCommand()
	wrong.Args = append(wrong.Args, "--state", filepath.Join(os.DevNull, "florete"))
	if err := wrong.Run(); err == nil {
		t.Error("a forwarder that cannot serve has taken over")
	}
	more()
	later := []*transfer{}
	for range 3 {
		for _, s := range []*service{ursula, laptop} {
			s.reload()
			more()
			later = append(later, newTransfer(t, c.Local))
		}
	}
	// The newest process carries new connections.
	for _, h := range []*agenttest.Host{c.Ursula, c.Laptop} {
		kit.Eventually(t, h.Name+" to carry", func() bool {
			r, _, err := agentstatus.Fetch(t.Context(), h.Socket())
			return err == nil && len(r.Paths) > 0 && r.Paths[0].Total > 20
		})
	}
	for _, x := range later {
		x.end(t)
	}
	load.end(t)
	long.end(t)
	t.Logf("%d connections, %d bytes", load.done.Load(), long.sent.Load())
	// Older processes without connections have ended.
	for _, s := range []*service{ursula, laptop} {
		kit.Eventually(t, "older processes to end", func() bool { return s.older() == 0 })
	}
}

// mainPID returns the main process that a message to systemd names. It returns zero if the message
// names none.
func mainPID(message string) int {
	text, ok := strings.CutPrefix(message, "MAINPID=")
	pid, err := strconv.Atoi(text)
	if !ok || err != nil {
		return 0
	}
	return pid
}

// older returns the number of older processes that still drain. Processes that have ended are
// reaped, as systemd would.
func (s *service) older() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid := range s.pids {
		if pid == s.main {
			continue
		}
		if got, _ := syscall.Wait4(pid, nil, syscall.WNOHANG, nil); got == 0 {
			n++
		} else {
			delete(s.pids, pid)
		}
	}
	return n
}

// endAll ends all processes that reload has started, as systemd does when it stops a unit.
func (s *service) endAll() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for pid := range s.pids {
		_ = syscall.Kill(pid, syscall.SIGKILL)
		_, _ = syscall.Wait4(pid, nil, 0, nil)
	}
	s.pids = map[int]bool{}
}

// TestWhoisWhileDraining checks that a service can still look up its callers after an upgrade, when
// an older process carries their connections.
func TestWhoisWhileDraining(t *testing.T) {
	seen := make(chan netip.AddrPort, 1)
	c := agenttest.NewCluster(t, agenttest.Upstream(t, func(conn *net.TCPConn) {
		defer conn.Close()
		seen <- conn.RemoteAddr().(*net.TCPAddr).AddrPort()
		io.Copy(conn, conn)
	}))
	ursula, laptop := newService(t, c.Ursula), newService(t, c.Laptop)
	ursula.start()
	laptop.start()
	conn, err := net.Dial("tcp", c.Local)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	from := <-seen
	stranger := uint32(12345)
	for range 2 {
		ursula.reload()
		a, err := whois.Fetch(t.Context(), whois.Beside(c.Ursula.Socket()), whois.Query{From: from})
		if err != nil || a.From != from || !strings.HasSuffix(a.Caller.String(), "/user/alice") {
			t.Errorf("%+v, %v", a, err)
		}
		if a, err := whois.Fetch(t.Context(), whois.Beside(c.Ursula.Socket()), whois.Query{From: from, As: &stranger}); err == nil {
			t.Errorf("a stranger learns %+v", a)
		}
	}
	conn.Close()
	kit.Eventually(t, "the older process to end", func() bool { return ursula.older() == 0 })
	if a, err := whois.Fetch(t.Context(), whois.Beside(c.Ursula.Socket()), whois.Query{From: from}); err == nil {
		t.Errorf("of a connection that has ended: %+v", a)
	}
}
