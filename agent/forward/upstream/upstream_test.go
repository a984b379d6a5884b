package upstream_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward/upstream"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

const (
	daemon  = 1     // an account of every Linux
	login   = 4711  // one that somebody logs in with
	dynamic = 64999 // one of DynamicUser=
	patient = kit.Patience
)

// serve listens under an account and sends its name to everybody who connects or sends.
func serve(t *testing.T, uid uint32, network, addr, name string) io.Closer {
	t.Helper()
	var ln net.Listener
	var conn net.PacketConn
	var err error
	agenttest.As(t, uid, func() {
		if network == "udp" {
			conn, err = net.ListenPacket(network, addr)
		} else {
			ln, err = net.Listen(network, addr)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if network == "udp" {
		t.Cleanup(func() { conn.Close() })
		go func() {
			for b := make([]byte, 64); ; {
				_, from, err := conn.ReadFrom(b)
				if err != nil {
					return
				}
				conn.WriteTo([]byte(name), from)
			}
		}()
		return conn
	}
	t.Cleanup(func() { ln.Close() })
	go func() {
		for {
			c, err := ln.Accept()
			if err != nil {
				return
			}
			c.Write([]byte(name))
			c.Close()
		}
	}()
	return ln
}

func dial(t *testing.T, addr, user string) (string, error) {
	t.Helper()
	owner, err := upstream.NewOwner(user)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	c, err := upstream.Dial(ctx, document.Published{Upstream: addr}, owner)
	if err != nil {
		return "", err
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(patient))
	b, err := io.ReadAll(c)
	return string(b), err
}

// owners are pairs of a socket's owner and the required one.
var owners = []struct {
	uid     uint32
	user    string
	refused bool
}{
	{uid: 0}, {uid: daemon}, {uid: dynamic}, {uid: login, refused: true},
	{uid: 0, user: "daemon"}, {uid: daemon, user: "daemon"}, {uid: login, user: "daemon", refused: true}, {uid: dynamic, user: "daemon", refused: true},
}

func want(t *testing.T, addr, user string, uid uint32, refused bool, got string, err error) {
	t.Helper()
	var foreign *upstream.ForeignError
	switch {
	case !refused && (err != nil || got != "service"):
		t.Errorf("uid %d at %s, of %q: %q, %v, want it let through", uid, addr, user, got, err)
	case refused && (!errors.As(err, &foreign) || foreign.UID != uid || foreign.Want != user):
		t.Errorf("uid %d at %s, of %q: %q, %v, want a ForeignError", uid, addr, user, got, err)
	}
}

func TestOwnerOfTCP(t *testing.T) {
	agenttest.Root(t, "can listen as another account")
	for _, listen := range []string{"127.0.0.1:0", "0.0.0.0:0", "[::]:0"} {
		for _, o := range owners {
			ln := serve(t, o.uid, "tcp", listen, "service").(net.Listener)
			addr := fmt.Sprintf("127.0.0.1:%d", ln.Addr().(*net.TCPAddr).Port)
			got, err := dial(t, addr, o.user)
			want(t, addr, o.user, o.uid, o.refused, got, err)
		}
	}
}

func TestOwnerOfUnix(t *testing.T) {
	agenttest.Root(t, "can listen as another account")
	dir := t.TempDir()
	for _, d := range []string{dir, filepath.Dir(dir)} {
		if err := os.Chmod(d, 0o777); err != nil {
			t.Fatal(err)
		}
	}
	for i, o := range owners {
		path := filepath.Join(dir, fmt.Sprint(i))
		serve(t, o.uid, "unix", path, "service")
		got, err := dial(t, "unix:"+path, o.user)
		want(t, path, o.user, o.uid, o.refused, got, err)
	}
}

func TestOwnerOfUDP(t *testing.T) {
	agenttest.Root(t, "can listen as another account")
	for _, o := range owners {
		conn := serve(t, o.uid, "udp", "127.0.0.1:0", "service").(net.PacketConn)
		owner, err := upstream.NewOwner(o.user)
		if err != nil {
			t.Fatal(err)
		}
		addr := conn.LocalAddr().String()
		c, err := upstream.Dial(t.Context(), document.Published{Upstream: addr, Protocol: document.UDP}, owner)
		if err != nil {
			t.Fatal(err)
		}
		peer := upstream.NewPeer(c.(*net.UDPConn), owner)
		want(t, addr, o.user, o.uid, o.refused, "service", peer.Check())
		conn.Close()
		if err := peer.Check(); err != nil {
			t.Errorf("nobody at %s: %v, want the kernel to say so", addr, err)
		}
		c.Close()
	}
}

// TestUnknownAccount checks that only root is accepted for an unknown account.
func TestUnknownAccount(t *testing.T) {
	owner, err := upstream.NewOwner("no-such-account")
	if err == nil {
		t.Error("no error")
	}
	for _, r := range owner.UIDs(0) {
		if r != (upstream.Range{}) {
			t.Errorf("uids %d to %d will do, want root alone", r.First, r.Last)
		}
	}
}

// TestReplaced checks that connections go to the service alone although another account takes its
// port repeatedly while it restarts.
func TestReplaced(t *testing.T) {
	agenttest.Root(t, "can listen as another account")
	addr := agenttest.Loopback().String()
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for i := 0; ; i++ {
			uid, name := uint32(daemon), "service"
			if i%2 == 1 {
				uid, name = login, "squatter"
			}
			ln := serve(t, uid, "tcp", addr, name)
			time.Sleep(time.Duration(i%7) * 100 * time.Microsecond)
			ln.Close()
			select {
			case <-stop:
				return
			default:
			}
		}
	}()
	reached := 0
	for until := time.Now().Add(10 * time.Second); reached == 0 || reached < 500 && time.Now().Before(until); {
		got, err := dial(t, addr, "daemon")
		if err == nil && got == "squatter" {
			t.Fatal("connected to the squatter")
		}
		if got == "service" {
			reached++
		}
	}
	close(stop)
	<-stopped
}
