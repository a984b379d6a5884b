package activation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/activation/needstate"
)

// never is a time far in the future, in Unix seconds.
const never = 1 << 40

// WatchClock sends a value to changed whenever the wall clock was set or the machine woke from
// sleep, until ctx ends. It uses TFD_TIMER_CANCEL_ON_SET of timerfd_create(2), and returns an error
// if the kernel has no such timer. It does not wait for the receiver, so changed should have a
// buffer of one.
func WatchClock(ctx context.Context, changed chan<- struct{}) error {
	fd, err := unix.TimerfdCreate(unix.CLOCK_REALTIME, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("timerfd_create: %w", err)
	}
	timer := os.NewFile(uintptr(fd), "timerfd")
	defer timer.Close()
	at := unix.ItimerSpec{Value: unix.Timespec{Sec: never}}
	if err := unix.TimerfdSettime(fd, unix.TFD_TIMER_ABSTIME|unix.TFD_TIMER_CANCEL_ON_SET, &at, nil); err != nil {
		return fmt.Errorf("timerfd_settime: %w", err)
	}
	defer context.AfterFunc(ctx, func() { timer.Close() })()
	for {
		_, err := timer.Read(make([]byte, 8))
		switch {
		case errors.Is(err, unix.ECANCELED):
			select {
			case changed <- struct{}{}:
			default:
			}
		case ctx.Err() != nil:
			return nil
		case err != nil:
			return err
		}
	}
}

// clockChanged retries requests that failed because of a wrong clock. Everything else follows from
// due times.
func (a *activation) clockChanged() {
	for _, n := range a.table.Needs {
		if !n.Busy {
			n.State.ClockChanged(time.Now())
		}
	}
}

// setBack preserves the length of waits, which are kept as times of the wall clock, when that clock
// was set back. If the clock was set forward, or the machine slept, needs that have become due are
// requested now.
func (a *activation) setBack(now time.Time) {
	last := a.moment
	a.moment = now
	if last.IsZero() {
		return
	}
	if by := setBack(last.Round(0), now.Round(0), now.Sub(last)); by > 0 {
		a.rewind(by)
	}
}

// setBack returns the amount by which the wall clock was set back when it went from one time to
// another while passed elapsed; zero if it was not.
func setBack(from, to time.Time, passed time.Duration) time.Duration {
	if by := from.Add(passed).Sub(to); by > time.Second {
		return by
	}
	return 0
}

// rewind moves all times in the future.
func (a *activation) rewind(by time.Duration) {
	a.documents.Rewind(by)
	a.logs.Rewind(by)
	a.crls.Rewind(by)
	for _, n := range a.needs {
		needstate.Rewind(by, &n.nextNotify)
	}
}
