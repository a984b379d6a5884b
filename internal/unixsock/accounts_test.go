package unixsock_test

import (
	"net"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/unixsock"
)

// dialAs connects to a Unix socket under another account. The kernel takes the account from the
// thread.
func dialAs(t *testing.T, socket string, uid int) int {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	become := func(uid int) {
		if _, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, ^uintptr(0), uintptr(uid), ^uintptr(0)); errno != 0 {
			t.Fatal(errno)
		}
	}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { unix.Close(fd) })
	become(uid)
	err = unix.Connect(fd, &unix.SockaddrUnix{Name: socket})
	become(0)
	if err != nil {
		t.Fatal(err)
	}
	return fd
}

// TestShares checks that subordinate accounts, however many, use no connections of the accounts
// that the policy names. It also checks that one named account uses no connections of the others.
func TestShares(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("NOT RUN: only root can be several accounts")
	}
	dir := t.TempDir()
	socket := filepath.Join(dir, "s")
	ln, err := net.Listen("unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.Chmod(socket, 0o666); err != nil {
		t.Fatal(err)
	}
	for ; dir != "/tmp" && dir != "/"; dir = filepath.Dir(dir) { // of this test alone
		if err := unix.Chmod(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	const first = 2000 // uid of the first account that is named
	named := func(_ *net.UnixConn, uid uint32) bool { return uid >= first && uid < first+100 }
	l := unixsock.Limits{Each: 64, Total: 256, Named: named}.Listen(ln)
	defer l.Close()
	accepted := make(chan net.Conn)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- c
		}
	}()
	// connects opens connections under an account, and returns those that the listener keeps.
	connects := func(uid, times int) (kept []net.Conn) {
		t.Helper()
		for range times {
			fd := dialAs(t, socket, uid)
			closed := make(chan struct{})
			go func() {
				defer close(closed)
				unix.Read(fd, make([]byte, 1)) // ends when it is closed
			}()
			select {
			case c := <-accepted:
				kept = append(kept, c)
			case <-closed:
			}
		}
		return kept
	}
	var all int
	var last net.Conn
	for uid := 100000; uid < 100020; uid++ {
		kept := connects(uid, 20)
		if len(kept) > 16 {
			t.Errorf("an account that nobody names has %d connections", len(kept))
		}
		if all += len(kept); len(kept) > 0 {
			last = kept[0]
		}
	}
	if all != 64 {
		t.Errorf("accounts that nobody names have %d connections, want 64", all)
	}
	if n := len(connects(first, 70)); n != 64 {
		t.Errorf("an account has %d connections, want 64", n)
	}
	for uid := first + 1; uid < first+4; uid++ {
		connects(uid, 64)
	}
	if n := len(connects(first+4, 20)); n != 16 { // of the quarter that is left
		t.Errorf("the fifth account has %d connections, want 16", n)
	}
	if n := len(connects(0, 3)); n != 3 {
		t.Errorf("root has %d connections, want 3", n)
	}
	if err := last.Close(); err != nil {
		t.Fatal(err)
	}
	if n := len(connects(100000, 1)) + len(connects(100030, 1)); n != 1 {
		t.Errorf("%d connections in place of one that ended", n)
	}
}
