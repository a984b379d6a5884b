package agenttest

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// A process is taken for the account of its first thread. The main goroutine keeps that thread, so
// that As never uses it.
func init() { runtime.LockOSThread() }

// As runs f as another account, which requires root. Sockets that f opens belong to that account. f
// must not start goroutines that have to run as the account.
func As(t testing.TB, uid uint32, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // never unlocked, so that the thread ends with the goroutine
		const same = ^uintptr(0)
		_, _, errno := unix.RawSyscall(unix.SYS_SETRESUID, same, uintptr(uid), same)
		if errno != 0 {
			done <- errno
			return
		}
		f()
		close(done)
	}()
	if err := <-done; err != nil {
		t.Fatalf("uid %d: %v", uid, err)
	}
}
