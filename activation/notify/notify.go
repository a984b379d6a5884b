// Package notify has systemd units reload or restart when what was delivered to them changed.
package notify

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	"github.com/coreos/go-systemd/v22/util"

	"github.com/florete/florete"
)

// Func makes one action happen and returns when it has.
type Func func(ctx context.Context, a florete.Action) error

// ErrNobody is the error where there is neither systemd nor a hook.
var ErrNobody = errors.New("no systemd runs here and no --hook is given")

// New chooses how units are notified: by a hook where one is given, else by the systemd
// that runs this host, else not at all.
func New(hook string) Func {
	switch {
	case hook != "":
		return Hook(hook)
	case util.IsRunningSystemd():
		return Systemd
	}
	return func(context.Context, florete.Action) error { return ErrNobody }
}

// Hook calls program with the unit and the action as its arguments. What it
// starts may outlive it.
func Hook(program string) Func {
	return func(ctx context.Context, a florete.Action) error {
		cmd := exec.CommandContext(ctx, program, a.Unit, a.Action)
		cmd.WaitDelay = time.Second
		out, err := cmd.CombinedOutput()
		if err != nil && !errors.Is(err, exec.ErrWaitDelay) {
			return fmt.Errorf("%s %s %s: %w%s", program, a.Unit, a.Action, err, tail(out))
		}
		return nil
	}
}

// tail is the last line of a program's output, as a reason.
func tail(out []byte) string {
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	last := lines[len(lines)-1]
	if last == "" {
		return ""
	}
	return ": " + last[:min(len(last), 200)]
}

// Systemd calls the service manager over D-Bus. Either action starts a unit that is
// not running, which may have waited for what is there now; a unit that cannot be
// reloaded is restarted. One that is still starting when ctx ends counts as notified: a second
// job would only start it from the beginning.
func Systemd(ctx context.Context, a florete.Action) error {
	conn, err := dbus.NewSystemConnectionContext(ctx)
	if err != nil {
		return fmt.Errorf("%s: %s: D-Bus: %w", a.Unit, a.Action, err)
	}
	defer conn.Close()
	job := conn.RestartUnitContext
	if a.Action == "reload" {
		job = conn.ReloadOrRestartUnitContext
	}
	done := make(chan string, 1)
	if _, err := job(ctx, a.Unit, "replace", done); err != nil {
		return fmt.Errorf("%s: %s: %w", a.Unit, a.Action, err)
	}
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("%s: %s: systemd's job ended with %q: see journalctl -u %s", a.Unit, a.Action, result, a.Unit)
		}
		return nil
	case <-ctx.Done():
		return nil
	}
}
