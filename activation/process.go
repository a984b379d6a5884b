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

// lock ensures that only one activation uses a state directory. The kernel releases the lock when
// the process ends.
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

// resumed reports whether an operator or a deployment has restarted activation. This is the case if
// the previous activation was stopped in an orderly way since the last boot. Needs then need not
// wait for their next attempt. After a crash or a boot, they keep their waits, so that the hosts of
// a fleet do not send all their requests at once after a power failure.
func resumed(l hostdir.Layout) bool {
	was, err := os.ReadFile(l.Stopped())
	if err != nil || os.Remove(l.Stopped()) != nil {
		return false
	}
	return string(was) == boot() && len(was) > 0
}

// stop records that activation was stopped in an orderly way, for resumed to read. If the record
// cannot be written, needs keep their waits after the next start.
func stop(l hostdir.Layout, report func(event.Event)) {
	if err := atomicfile.File(l.Stopped(), []byte(boot()), fs.FileMode(0o600)); err != nil {
		report(event.Event{Event: event.Disk, Message: err.Error()})
	}
}

// boot returns a value that differs for each boot: the creation time of /run. The kernel's boot_id
// is not used, because activation's unit has no access to it. boot returns "" if the file system
// does not report creation times.
func boot() string {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, "/run", 0, unix.STATX_BTIME, &s); err != nil || s.Mask&unix.STATX_BTIME == 0 {
		return ""
	}
	return fmt.Sprintf("%d.%09d", s.Btime.Sec, s.Btime.Nsec)
}
