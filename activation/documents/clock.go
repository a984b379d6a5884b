package documents

import (
	"crypto/rand"
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/unixtime"
)

// Clock is a moment by the two clocks of a machine: one that nobody sets and that ends with
// the boot, and the wall clock, which goes on.
type Clock struct {
	Boot    string        // identity of the boot
	Running time.Duration // CLOCK_BOOTTIME, which counts sleep too
	Wall    time.Time
}

// bootID is the file with the identity of the boot.
const bootID = "/proc/sys/kernel/random/boot_id"

// ReadClock is this moment.
func ReadClock() (Clock, error) {
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return Clock{}, fmt.Errorf("identity of this boot: %w", err)
	}
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return Clock{}, fmt.Errorf("clock_gettime: %w", err)
	}
	return Clock{strings.TrimSpace(string(boot)), time.Duration(t.Nano()), time.Now()}, nil
}

// Commit is one that begins now, with an identity of its own.
func (c Clock) Commit(timeout time.Duration) hostdir.Commit {
	return hostdir.Commit{
		ID: strings.ToLower(rand.Text()[:8]), Begun: unixtime.Of(c.Wall), Deadline: unixtime.Of(c.Wall.Add(timeout)),
		Boot: c.Boot, Ends: int64(c.Running + timeout),
	}
}

// Left is the time until the deadline. After a reboot the wall clock decides, and however it
// was set, no more than the whole timeout is left.
func (c Clock) Left(of hostdir.Commit) time.Duration {
	if of.Boot == c.Boot {
		return time.Duration(of.Ends) - c.Running
	}
	return min(of.Deadline.Sub(c.Wall), of.Deadline.Sub(of.Begun.Time))
}

// Rearm is the commit with its deadline by the clock of this boot.
func (c Clock) Rearm(of hostdir.Commit) hostdir.Commit {
	of.Ends = int64(c.Running + c.Left(of))
	of.Boot = c.Boot
	return of
}

// Extend returns a commit that has a time left, where it had less, but never a deadline later
// than most after it began. It reports whether the deadline changed.
func (c Clock) Extend(of hostdir.Commit, left, most time.Duration) (hostdir.Commit, bool) {
	by := min(left-c.Left(of), most-of.Deadline.Sub(of.Begun.Time)).Truncate(time.Second) // as on disk
	if by <= 0 {
		return of, false
	}
	of.Deadline, of.Ends = of.Deadline.Add(by), of.Ends+int64(by)
	return of, true
}

// Begun is when a commit began, by CLOCK_BOOTTIME of the boot that its deadline is of: before
// that boot where it began before.
func Begun(c hostdir.Commit) time.Duration {
	return time.Duration(c.Ends) - c.Deadline.Sub(c.Begun.Time)
}
