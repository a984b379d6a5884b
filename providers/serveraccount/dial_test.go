package serveraccount

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// listenAs listens at a loopback port as another account.
func listenAs(t *testing.T, uid int) net.Listener {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	if err := unix.Setfsuid(uid); err != nil {
		t.Fatal(err)
	}
	defer unix.Setfsuid(0)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

// TestDial holds that nothing is sent to a port that an ordinary account took while the server
// was down.
func TestDial(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: only root listens as another account")
	}
	const nobody = 65534 // shared by what has no account of its own
	for uid, wants := range map[int]string{0: "", 106: "", 61999: "", 1000: "want root or a system account", 5000: "(5000)", nobody: "an ordinary account", 165536: "165536"} {
		l := listenAs(t, uid)
		conn, err := Dial(t.Context(), l.Addr().String())
		if err == nil {
			conn.Close()
		}
		if wants == "" && err != nil || wants != "" && (err == nil || !strings.Contains(err.Error(), wants) || !strings.Contains(err.Error(), l.Addr().String())) {
			t.Errorf("a listener of uid %d: %v, want %q", uid, err, wants)
		}
	}
	path := filepath.Join(t.TempDir(), "server.sock")
	l, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	conn, err := Dial(t.Context(), "unix:"+path)
	if err != nil {
		t.Fatal(err)
	}
	conn.Close()
}
