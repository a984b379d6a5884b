package documents

import (
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/hostdir"
)

// heldError is the error of a lock that another process does not release.
type heldError struct {
	path string
	pid  int
}

func (e *heldError) Error() string {
	return fmt.Sprintf("%s: process %d has changed documents for %s: see what it waits for", e.path, e.pid, patience)
}

// patience is far longer than documents take to be written; less in tests.
var patience = 10 * time.Second

// dying is far longer than a process takes to end that was killed.
const dying = 10 * time.Second

// lock makes this the only process that changes the documents in force. The kernel names the
// process that has the lock (fcntl(2)), and releases it when that ends, however it ends.
func lock(l hostdir.Layout) (unlock func(), err error) { return lockWithin(l, patience) }

// lockWithin waits for the lock for so long at most.
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

// holder is the error that names the process with the lock.
func holder(f *os.File, path string) error {
	of := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_GETLK, &of); err != nil {
		return err
	}
	return &heldError{path, int(of.Pid)}
}

// insist is lock for whom nothing may hold up: a process that keeps the lock, which has
// hung, is killed.
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
