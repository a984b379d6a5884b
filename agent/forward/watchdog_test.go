package forward_test

import (
	"net"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/agent/forward"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestWatchdog checks that every turn of the loop notifies systemd, and that turns come often
// enough whatever Poll is.
func TestWatchdog(t *testing.T) {
	path := filepath.Join(t.TempDir(), "notify")
	conn, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	t.Setenv("NOTIFY_SOCKET", path)
	t.Setenv("WATCHDOG_USEC", "300000")
	h := agenttest.NewHost(t, "laptop", kit.NewCA())
	runWith(t, forward.Config{Layout: h.Layout, Socket: h.Socket(), Poll: time.Hour})
	conn.SetReadDeadline(time.Now().Add(kit.Patience))
	for alive, b := 0, make([]byte, 4096); alive < 3; {
		n, err := conn.Read(b)
		if err != nil {
			t.Fatalf("%v after %d signs of life", err, alive)
		}
		if strings.Contains(string(b[:n]), "WATCHDOG=1") {
			alive++
		}
	}
}
