package activation

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	"github.com/coreos/go-systemd/v22/util"
)

// Notifier restarts a systemd unit after its files have changed. It returns when the restart has
// finished, or an error if the restart failed.
type Notifier func(ctx context.Context, unit string) error

// ErrNoNotifier means that this host cannot restart units: systemd is not running, and no hook was
// given.
var ErrNoNotifier = errors.New("no systemd runs here and no --hook is given")

// NewNotifier returns a Notifier that runs the program hook. If hook is empty, the Notifier
// restarts units with systemd. If systemd is not running either, the Notifier returns
// ErrNoNotifier.
func NewNotifier(hook string) Notifier {
	switch {
	case hook != "":
		return NotifyHook(hook)
	case util.IsRunningSystemd():
		return NotifySystemd
	}
	return func(context.Context, string) error { return ErrNoNotifier }
}

// NotifyHook returns a Notifier that runs a program with the name of the unit as its only argument.
// It does not wait for processes that the program leaves in the background. If the program fails,
// the error contains the last line of its output.
func NotifyHook(program string) Notifier {
	return func(ctx context.Context, unit string) error {
		cmd := exec.CommandContext(ctx, program, unit)
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			return fmt.Errorf("%s %s: %w%s", program, unit, err, tail(out))
		}
		return nil
	}
}

// tail returns the last line of a program's output, to be appended to an error.
func tail(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	if last == "" {
		return ""
	}
	return ": " + last[:min(len(last), 200)]
}

// NotifySystemd restarts a systemd unit over D-Bus, or starts it if it is not running, because it
// may have been waiting for its files. If the unit is still starting when ctx ends, NotifySystemd
// returns nil, because a second restart would only begin again.
func NotifySystemd(ctx context.Context, unit string) error {
	conn, err := dbus.NewSystemConnectionContext(ctx)
	if err != nil {
		return fmt.Errorf("%s: restart: D-Bus: %w", unit, err)
	}
	defer conn.Close()
	done := make(chan string, 1)
	if _, err := conn.RestartUnitContext(ctx, unit, "replace", done); err != nil {
		return fmt.Errorf("%s: restart: %w", unit, err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("%s: restart: systemd's job ended with %q: see journalctl -u %s", unit, result, unit)
		}
		return nil
	case <-ctx.Done():
		return nil
	}
}
