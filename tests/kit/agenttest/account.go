package agenttest

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// init locks the main goroutine to its thread, which is the process's main thread. The kernel
// reports the account of the main thread as the account of the process, and the function As must
// therefore never change the account of this thread.
func init() { runtime.LockOSThread() }

// As calls f as the Unix account with the given uid, for example to connect to a listener that only
// this account may use. The sockets that f opens belong to the account. Goroutines that f starts do
// not run as the account. As requires root.
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
