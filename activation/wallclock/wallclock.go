// Package wallclock reports when this machine's wall clock is set.
package wallclock

import (
	"context"
	"errors"
	"fmt"
	"os"

	"golang.org/x/sys/unix"
)

// never is a time that does not come, in Unix seconds.
const never = 1 << 40

// Watch sends to changed whenever the wall clock was set or the machine has woken
// from sleep (TFD_TIMER_CANCEL_ON_SET of timerfd_create(2)), until ctx ends. It does
// not wait for a receiver: a channel with room for one misses nothing. The error is
// that this kernel has no such timer.
func Watch(ctx context.Context, changed chan<- struct{}) error {
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
