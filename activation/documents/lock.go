package documents

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/hostdir"
)

// heldError is the error for a lock that another process holds for too long.
type heldError struct {
	path string
	pid  int
}

func (e *heldError) Error() string {
	return fmt.Sprintf("%s: process %d has changed documents for %s: see what it waits for", e.path, e.pid, patience)
}

// patience is the longest wait for the lock. This is much longer than a process needs to write
// documents. Tests use a shorter time.
var patience = 10 * time.Second

// dying is the longest wait until a killed process has ended. This is much longer than the kernel
// needs.
const dying = 10 * time.Second

// lock waits for exclusive access to the documents in force. The kernel knows which process holds
// the lock (fcntl(2)), and releases the lock when that process ends.
func lock(l hostdir.Layout) (unlock func(), err error) { return lockWithin(l, patience) }

// lockWithin is like lock, but waits no longer than the time given by most.
func lockWithin(l hostdir.Layout, most time.Duration) (unlock func(), err error) {
	if err := os.MkdirAll(string(l), 0o755); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	path := l.DocumentsLock()
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	for began := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err = unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
		if err == nil {
			return func() { f.Close() }, nil
		}
		if !errors.Is(err, unix.EAGAIN) && !errors.Is(err, unix.EACCES) {
			break
		}
		if time.Since(began) > most {
			err = holder(f, path)
			break
		}
	}
	f.Close()
	return nil, err
}

// holder returns an error that names the process which holds the lock.
func holder(f *os.File, path string) error {
	of := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &of); err != nil {
		return err
	}
	return &heldError{path, int(of.Pid)}
}

// insist is like lock, but kills a process that does not release the lock in time. It is used for
// the rollback, which a hanging process must not delay.
func insist(l hostdir.Layout) (unlock func(), err error) {
	unlock, err = lock(l)
	var held *heldError
	if !errors.As(err, &held) || held.pid <= 0 {
		return unlock, err
	}
	if err := unix.Kill(held.pid, unix.SIGKILL); err != nil && !errors.Is(err, unix.ESRCH) {
		return nil, fmt.Errorf("%w; kill it: %w", held, err)
	}
	return lockWithin(l, dying)
}
