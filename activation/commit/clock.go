package commit

import (
	"fmt"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete"
)

// clock is a moment by the two clocks of a machine: one that nobody sets and that ends with
// the boot, and the wall clock, which goes on.
type clock struct {
	boot    string        // identity of the boot
	running time.Duration // CLOCK_BOOTTIME, which counts sleep too
	wall    time.Time
}

// bootID is the file with the identity of the boot.
const bootID = "/proc/sys/kernel/random/boot_id"

func readClock() (clock, error) {
	boot, err := os.ReadFile(bootID)
	if err != nil {
		return clock{}, fmt.Errorf("identity of this boot: %w", err)
	}
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &t); err != nil {
		return clock{}, fmt.Errorf("clock_gettime: %w", err)
	}
	return clock{strings.TrimSpace(string(boot)), time.Duration(t.Nano()), time.Now()}, nil
}

// commit is one that begins now.
func (c clock) commit(id string, timeout time.Duration) florete.Commit {
	return florete.Commit{
		ID: id, Begun: florete.TimeOf(c.wall), Deadline: florete.TimeOf(c.wall.Add(timeout)),
		Boot: c.boot, Ends: int64(c.running + timeout),
	}
}

// left is the time until the deadline. After a reboot the wall clock decides, and however it
// was set, no more than the whole timeout is left.
func (c clock) left(of florete.Commit) time.Duration {
	if of.Boot == c.boot {
		return time.Duration(of.Ends) - c.running
	}
	return min(of.Deadline.Sub(c.wall), of.Deadline.Sub(of.Begun.Time))
}

// begun is when a commit began, by CLOCK_BOOTTIME of the boot that its deadline is of: before
// that boot where it began before.
func begun(c florete.Commit) time.Duration {
	return time.Duration(c.Ends) - c.Deadline.Sub(c.Begun.Time)
}

// rearm is the commit with its deadline by the clock of this boot.
func (c clock) rearm(of florete.Commit) florete.Commit {
	of.Ends = int64(c.running + c.left(of))
	of.Boot = c.boot
	return of
}
