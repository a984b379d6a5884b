package agenttest

import (
	"runtime"
	"testing"

	"golang.org/x/sys/unix"
)

// The process is seen as the account of its first thread, so that is none that As takes:
// the main goroutine has it for good.
func init() { runtime.LockOSThread() }

// As runs f under another account, which needs root: sockets that it opens are the
// account's. It must start no goroutines that are to be the account's too.
func As(t testing.TB, uid uint32, f func()) {
	t.Helper()
	done := make(chan error)
	go func() {
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
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
