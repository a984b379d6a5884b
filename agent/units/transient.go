package units

import (
	"context"
	"errors"
	"fmt"

	"github.com/coreos/go-systemd/v22/dbus"
	"github.com/coreos/go-systemd/v22/util"
	godbus "github.com/godbus/dbus/v5"
)

// StartTransient starts a command as a transient systemd service, without a unit file, and returns
// when the service is ready. An upgrade or removal of the installation therefore cannot stop the
// service. If the service is already running, StartTransient does nothing.
func StartTransient(ctx context.Context, unit, description string, command []string) error {
	if !util.IsRunningSystemd() {
		return fmt.Errorf("%s: start: %w", unit, ErrNoSystemd)
	}
	conn, err := dbus.NewSystemConnectionContext(ctx)
	if err != nil {
		return fmt.Errorf("%s: start: D-Bus: %w", unit, err)
	}
	defer conn.Close()
	property := func(name string, value any) dbus.Property {
		return dbus.Property{Name: name, Value: godbus.MakeVariant(value)}
	}
	done := make(chan string, 1)
	_, err = conn.StartTransientUnitContext(ctx, unit, "fail", []dbus.Property{
		dbus.PropDescription(description), dbus.PropType("notify"),
		dbus.PropExecStart(command, false), // with true, systemd would ignore a failure of the command
		property("Restart", "on-failure"), property("RestartUSec", uint64(1_000_000)), property("StartLimitIntervalUSec", uint64(0)),
		property("OOMScoreAdjust", int32(-900)), property("CollectMode", "inactive-or-failed"),
	}, done)
	var busy godbus.Error
	if errors.As(err, &busy) && busy.Name == "org.freedesktop.systemd1.UnitExists" {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%s: start: %w", unit, err)
	}
	return ended(ctx, unit, done)
}

// ended waits until a job of systemd has ended, and returns an error if the job failed.
func ended(ctx context.Context, unit string, done <-chan string) error {
	select {
	case result := <-done:
		if result != "done" {
			return fmt.Errorf("%s: start: systemd's job ended with %q: see journalctl -u %s", unit, result, unit)
		}
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%s: start: %w", unit, ctx.Err())
	}
}
