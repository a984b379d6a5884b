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

// never is a Unix time, in seconds, that is so far in the future that the timer never expires.
const never = 1 << 40

// WatchClock sends a value on changed whenever the wall clock is set or the machine wakes from
// sleep. It returns nil when ctx ends, and an error if the kernel does not support
// TFD_TIMER_CANCEL_ON_SET of timerfd_create(2). WatchClock does not wait for a receiver, so changed
// should have a buffer of one.
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

// clockChanged retries the requests that failed because the clock was wrong. It need not do more,
// because all other work starts at its due time.
func (a *activation) clockChanged() {
	for _, n := range a.table.Needs {
		if !n.Busy {
			n.State.ClockChanged(time.Now())
		}
	}
}

// setBack keeps waits at their length when the wall clock was set back, because the ends of waits
// are stored as wall clock times. If the clock was set forward, or the machine slept, setBack
// changes nothing: needs that have become due are requested now.
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

// setBack returns the amount by which the wall clock was set back between two readings, from and
// to. The real time between the readings is given by passed. The result is zero if the clock was
// not set back by more than a second.
func setBack(from, to time.Time, passed time.Duration) time.Duration {
	if by := from.Add(passed).Sub(to); by > time.Second {
		return by
	}
	return 0
}

// rewind moves all planned times to an earlier time, after the wall clock was set back by the given
// amount.
func (a *activation) rewind(by time.Duration) {
	a.documents.Rewind(by)
	a.logs.Rewind(by)
	a.crls.Rewind(by)
	for _, n := range a.needs {
		needstate.Rewind(by, &n.nextNotify)
	}
}
