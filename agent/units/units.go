// Package units finds the systemd units that a host should run, and their state. It also restarts
// units after an operator has replaced their certificates for etcd.
package units

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/dbus"
	"github.com/coreos/go-systemd/v22/util"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

// timeout is the time limit for getting the state of units from systemd.
const timeout = 5 * time.Second

// Unit is a systemd unit and its state, as systemd reports it.
type Unit struct {
	Name, Load, Active, Sub string
	File                    string // state of the unit file ("enabled", "disabled", "static", …) or empty
	Text                    string // status text of a service (sd_notify STATUS=)
	Descriptors             uint64 // limit of open files of the running main process; zero if not known
	Log                     string // last journal line of a service that does not run; only set by ListLogs
}

// ErrNoSystemd reports that this host does not run systemd. The functions of this package that need
// systemd return it.
var ErrNoSystemd = errors.New("no systemd runs here")

// List returns the state of the systemd units with the given names.
func List(ctx context.Context, names []string) ([]Unit, error) {
	if !util.IsRunningSystemd() {
		return nil, ErrNoSystemd
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := dbus.NewSystemConnectionContext(ctx)
	if err != nil {
		return nil, fmt.Errorf("D-Bus: %w", err)
	}
	defer conn.Close()
	listed, err := conn.ListUnitsByNamesContext(ctx, names)
	if err != nil {
		return nil, err
	}
	units := make([]Unit, len(listed))
	for i, l := range listed {
		u := Unit{Name: l.Name, Load: l.LoadState, Active: l.ActiveState, Sub: l.SubState}
		if p, err := conn.GetUnitPropertyContext(ctx, u.Name, "UnitFileState"); err == nil {
			u.File, _ = p.Value.Value().(string)
		}
		if strings.HasSuffix(u.Name, ".service") {
			if p, err := conn.GetServicePropertyContext(ctx, u.Name, "StatusText"); err == nil {
				u.Text, _ = p.Value.Value().(string)
			}
			if p, err := conn.GetServicePropertyContext(ctx, u.Name, "MainPID"); err == nil {
				if pid, _ := p.Value.Value().(uint32); pid != 0 {
					u.Descriptors = descriptors(int(pid))
				}
			}
		}
		units[i] = u
	}
	return units, nil
}

// descriptors returns the limit of open files of a process. It returns zero if the limit cannot be
// read.
func descriptors(pid int) uint64 {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "Max open files"); ok {
			soft, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
			n, _ := strconv.ParseUint(soft, 10, 64) // "unlimited" counts as not known
			return n
		}
	}
	return 0
}

// Started returns the time at which a running unit was started, or the zero time if the unit does
// not run. systemd copies the credentials of the unit at this time or shortly afterwards.
func Started(ctx context.Context, unit string) (time.Time, error) {
	if !util.IsRunningSystemd() {
		return time.Time{}, ErrNoSystemd
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	conn, err := dbus.NewSystemConnectionContext(ctx)
	if err != nil {
		return time.Time{}, fmt.Errorf("D-Bus: %w", err)
	}
	defer conn.Close()
	p, err := conn.GetUnitPropertiesContext(ctx, unit)
	if err != nil {
		return time.Time{}, fmt.Errorf("%s: %w", unit, err)
	}
	state, _ := p["ActiveState"].(string)
	if state != "active" && state != "activating" && state != "reloading" {
		return time.Time{}, nil
	}
	at, _ := p["InactiveExitTimestamp"].(uint64)
	return time.UnixMicro(int64(at)), nil
}

// Start starts a systemd unit and returns when the unit is ready.
func Start(ctx context.Context, unit string) error {
	if !util.IsRunningSystemd() {
		return fmt.Errorf("%s: start: %w", unit, ErrNoSystemd)
	}
	conn, err := dbus.NewSystemConnectionContext(ctx)
	if err != nil {
		return fmt.Errorf("%s: start: D-Bus: %w", unit, err)
	}
	defer conn.Close()
	done := make(chan string, 1)
	if _, err := conn.StartUnitContext(ctx, unit, "replace", done); err != nil {
		return fmt.Errorf("%s: start: %w: install this host's newest programs", unit, err)
	}
	return ended(ctx, unit, done)
}

// ListLogs returns the state of units as List does, with the last journal line of each service that
// does not run. It is slower than List, because it reads the journal.
func ListLogs(ctx context.Context, names []string) ([]Unit, error) {
	units, err := List(ctx, names)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for i, u := range units {
		if u.Active != "active" && strings.HasSuffix(u.Name, ".service") {
			out, _ := exec.CommandContext(ctx, "journalctl", "_SYSTEMD_UNIT="+u.Name, "--lines=1", "--output=cat", "--quiet").Output()
			units[i].Log = strings.TrimSpace(string(out))
		}
	}
	return units, err
}

// Expected returns the state of the units that a host must have according to its manifest, sorted
// by name. It reads the state with list, which is List or ListLogs. A unit that is not installed is
// included only if the manifest requires it, because documents from the network cannot install
// units.
func Expected(ctx context.Context, list func(context.Context, []string) ([]Unit, error), i hostdir.Instance, m document.Manifest) ([]Unit, error) {
	var names []string
	required := map[string]bool{}
	for name, r := range m.Units {
		names = append(names, i.Unit(name))
		required[i.Unit(name)] = r
	}
	slices.Sort(names)
	all, err := list(ctx, names)
	return slices.DeleteFunc(all, func(u Unit) bool { return u.Load == "not-found" && !required[u.Name] }), err
}
