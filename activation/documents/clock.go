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

// Clock is a reading of two clocks of a machine at one moment: the time since boot, which nobody
// can set, and the wall clock.
type Clock struct {
	Boot    string        // ID of the boot
	Running time.Duration // CLOCK_BOOTTIME, which includes sleep
	Wall    time.Time
}

// bootID is the file with the ID of the boot.
const bootID = "/proc/sys/kernel/random/boot_id"

// ReadClock reads both clocks.
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

// Commit returns a commit with a new ID that begins now and ends after the timeout.
func (c Clock) Commit(timeout time.Duration) hostdir.Commit {
	return hostdir.Commit{
		ID: strings.ToLower(rand.Text()[:8]), Begun: unixtime.Of(c.Wall), Deadline: unixtime.Of(c.Wall.Add(timeout)),
		Boot: c.Boot, Ends: int64(c.Running + timeout),
	}
}

// Left returns the time that remains until the deadline of a commit. After a reboot it uses the
// wall clock, but never returns more than the commit's whole timeout.
func (c Clock) Left(of hostdir.Commit) time.Duration {
	if of.Boot == c.Boot {
		return time.Duration(of.Ends) - c.Running
	}
	return min(of.Deadline.Sub(c.Wall), of.Deadline.Sub(of.Begun.Time))
}

// Rearm returns the commit with its deadline converted to the clock of the current boot.
func (c Clock) Rearm(of hostdir.Commit) hostdir.Commit {
	of.Ends = int64(c.Running + c.Left(of))
	of.Boot = c.Boot
	return of
}

// Extend postpones the deadline of a commit if less time remains than left, and returns the commit.
// The parameter most limits the time from the beginning of the commit to its deadline. Extend also
// reports whether the deadline has changed.
func (c Clock) Extend(of hostdir.Commit, left, most time.Duration) (hostdir.Commit, bool) {
	by := min(left-c.Left(of), most-of.Deadline.Sub(of.Begun.Time)).Truncate(time.Second) // as stored on disk
	if by <= 0 {
		return of, false
	}
	of.Deadline, of.Ends = of.Deadline.Add(by), of.Ends+int64(by)
	return of, true
}

// Begun returns the time at which a commit began, by CLOCK_BOOTTIME of the boot in which its
// deadline is measured. It is negative if the commit began before that boot.
func Begun(c hostdir.Commit) time.Duration {
	return time.Duration(c.Ends) - c.Deadline.Sub(c.Begun.Time)
}
