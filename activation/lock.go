package activation

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/hostdir"
)

// lock makes this the only activation of a state directory. The kernel releases
// the lock when the process ends, however it ends.
func lock(l hostdir.Layout) (unlock func(), err error) {
	if err := os.MkdirAll(string(l), 0o755); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	path := filepath.Join(string(l), "activation.lock")
	// Any account that can open it can lock it: flock(2) needs no permission to write.
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err == nil {
		err = f.Chmod(0o600)
	}
	if err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		defer f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			pid, _ := os.ReadFile(path)
			return nil, fmt.Errorf("%s: another activation (pid %s) is at work: stop it first, or let it do what there is to do", l, strings.TrimSpace(string(pid)))
		}
		return nil, fmt.Errorf("%s: lock: %w", path, err)
	}
	if err := f.Truncate(0); err == nil {
		fmt.Fprintln(f, os.Getpid())
	}
	return func() { f.Close() }, nil
}
