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

// Clock contains simultaneous readings of the two clocks of a machine: the time since boot, which
// nobody can set, and the wall clock. With the first, deadlines hold even if the wall clock is
// changed.
type Clock struct {
	Boot    string        // ID of the boot
	Running time.Duration // CLOCK_BOOTTIME, which includes sleep
	Wall    time.Time
}

// bootID is the file in which the kernel shows the ID of the current boot.
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

// Change returns a change with a new random ID, which begins now and has its deadline after the
// given timeout. It writes nothing to disk.
func (c Clock) Change(timeout time.Duration) hostdir.Change {
	return hostdir.Change{
		ID: strings.ToLower(rand.Text()[:8]), Begun: unixtime.Of(c.Wall), Deadline: unixtime.Of(c.Wall.Add(timeout)),
		Boot: c.Boot, Ends: int64(c.Running + timeout),
	}
}

// Left returns the time that is left until the deadline of a change. It is negative after the
// deadline. The time is measured with the clock since boot, or with the wall clock if the machine
// was rebooted after the change began. After a reboot, the result is at most the whole time that
// the change was given.
func (c Clock) Left(of hostdir.Change) time.Duration {
	if of.Boot == c.Boot {
		return time.Duration(of.Ends) - c.Running
	}
	return min(of.Deadline.Sub(c.Wall), of.Deadline.Sub(of.Begun.Time))
}

// Rearm returns a copy of a change whose deadline is measured with the time since the current boot.
// It is used after a reboot, when the readings from the earlier boot no longer count.
func (c Clock) Rearm(of hostdir.Change) hostdir.Change {
	of.Ends = int64(c.Running + c.Left(of))
	of.Boot = c.Boot
	return of
}

// Extend returns a copy of a change whose deadline is later, so that the duration left remains from
// now. The whole change lasts at most the duration most, and its deadline never becomes earlier.
// Extend also reports whether the deadline has changed.
func (c Clock) Extend(of hostdir.Change, left, most time.Duration) (hostdir.Change, bool) {
	by := min(left-c.Left(of), most-of.Deadline.Sub(of.Begun.Time)).Truncate(time.Second) // as stored on disk
	if by <= 0 {
		return of, false
	}
	of.Deadline, of.Ends = of.Deadline.Add(by), of.Ends+int64(by)
	return of, true
}

// Begun returns the time at which a change began, counted from a boot of the machine
// (CLOCK_BOOTTIME). It is the same boot from which the change's deadline is counted. The result is
// negative if the change began before that boot.
func Begun(c hostdir.Change) time.Duration {
	return time.Duration(c.Ends) - c.Deadline.Sub(c.Begun.Time)
}
