package activation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostdir"
)

// lock makes this process the only activation of a state directory. The kernel releases the lock
// when the process ends.
func lock(l hostdir.Layout) (unlock func(), err error) {
	if err := os.MkdirAll(string(l), 0o755); err != nil {
		return nil, fmt.Errorf("state directory: %w", err)
	}
	path := l.ActivationLock()
	// Any account that can open the file can lock it, because flock(2) does not require permission
	// to write.
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

// resumed reports whether an operator has started activation again, by hand or by a deployment: the
// previous activation was stopped in order during this boot. After a crash or a boot, existing
// waits continue, so that a fleet that lost its power does not return all at once.
func resumed(l hostdir.Layout) bool {
	was, err := os.ReadFile(l.Stopped())
	if err != nil || os.Remove(l.Stopped()) != nil {
		return false
	}
	return string(was) == boot() && len(was) > 0
}

// stop records that activation was stopped in order. If that fails, existing waits continue after
// the next start.
func stop(l hostdir.Layout, report func(event.Event)) {
	if err := atomicfile.File(l.Stopped(), []byte(boot()), fs.FileMode(0o600)); err != nil {
		report(event.Event{Event: event.Disk, Message: err.Error()})
	}
}

// boot identifies this boot by the creation time of /run. It returns "" if the kernel does not
// report it. The unit cannot read the kernel's boot_id.
func boot() string {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, "/run", 0, unix.STATX_BTIME, &s); err != nil || s.Mask&unix.STATX_BTIME == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%09d", s.Btime.Sec, s.Btime.Nsec)
}
