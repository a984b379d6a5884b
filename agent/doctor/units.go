package doctor

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/coreos/go-systemd/v22/dbus"
	"github.com/coreos/go-systemd/v22/util"

	"github.com/florete/florete"
)

// Unit is how a systemd unit stands.
type Unit struct {
	Name, Load, Active, Sub string
	File                    string // "enabled", "disabled", "static", …, or empty
	Text                    string // of a service, what it reports of itself (sd_notify STATUS=)
	Log                     string // of one that does not run, the last line of its own log
}

// Units finds how units stand. errNoSystemd is the error where systemd does not run.
type Units func(ctx context.Context, names []string) ([]Unit, error)

// errNoSystemd is the error where systemd does not run the host.
var errNoSystemd = errors.New("no systemd runs here")

func systemd(ctx context.Context, names []string) ([]Unit, error) {
	if !util.IsRunningSystemd() {
		return nil, errNoSystemd
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
			if u.Active != "active" {
				out, _ := exec.CommandContext(ctx, "journalctl", "_SYSTEMD_UNIT="+u.Name, "--lines=1", "--output=cat", "--quiet").Output()
				u.Log = strings.TrimSpace(string(out))
			}
		}
		units[i] = u
	}
	return units, nil
}

// wanted are the units that this host should have, and whether each must be installed:
// documents from the network bring none, and NixOS keeps names itself.
func (h *host) wanted() map[string]bool {
	unit := h.Instance.Unit
	wanted := map[string]bool{unit("activate.service"): true, unit("refresh.timer"): true, h.hostsFileUnit(): false}
	if h.identities.SVID(h.manifest.Identity.ID) != nil {
		wanted[unit("agent.service")] = true
	}
	for _, kind := range h.Layout.Provides() {
		wanted[unit("provider-"+kind+".service")] = true
	}
	for _, n := range h.manifest.Needs {
		if len(n.Deliver.Files) == 0 {
			continue
		}
		wanted[unit("need-"+n.ID+".path")] = false
		if n.For.Kind() == florete.KindService {
			wanted[unit("credentials.socket")] = false
		}
	}
	for _, p := range h.manifest.Forwarder.Publish {
		for _, name := range []string{"host", "host-refetch"} {
			if p.Upstream == "unix:"+h.Instance.Run()+"-"+name+".sock" {
				wanted[unit(name+".socket")] = false
			}
		}
	}
	return wanted
}

// units must run, and start at boot.
func (h *host) units(ctx context.Context) (string, []Finding) {
	wanted := h.wanted()
	units, err := h.Units(ctx, slices.Sorted(maps.Keys(wanted)))
	if errors.Is(err, errNoSystemd) {
		return err.Error(), nil
	}
	if err != nil {
		return "no answer", []Finding{fix(err.Error(), "systemctl start dbus.service")}
	}
	var found []Finding
	known := len(units)
	for _, u := range units {
		if u.Load == "not-found" && !wanted[u.Name] {
			known--
			continue
		}
		if f, ok := h.unit(u); !ok {
			found = append(found, f)
		}
	}
	return fmt.Sprintf("%d of %d active", known-len(found), known), found
}

// unit is what is wrong with one, if anything.
func (h *host) unit(u Unit) (Finding, bool) {
	problem := fmt.Sprintf("%s is %s (%s)", u.Name, u.Active, u.Sub)
	if u.Active != "inactive" && u.Log != "" { // a person stopped what is inactive
		problem += ": " + u.Log
	}
	settings := filepath.Join(h.Etc, "provider.hujson")
	switch {
	case u.Load == "not-found":
		return do(u.Name+" is not installed", "run install.sh of this host's bundle (florctl bundle)"), false
	case u.Load == "masked":
		return fix(u.Name+" is masked", fmt.Sprintf("systemctl unmask %s && systemctl start %[1]s", u.Name)), false
	case strings.HasPrefix(u.Text, "waiting for ") && (u.Active == "active" || u.Active == "activating"):
		return do(u.Name+" is "+u.Text, "what that says"), false
	case u.Active == "active" && u.File == "disabled":
		return fix(u.Name+" does not start at boot", "systemctl enable "+u.Name), false
	case u.Active == "active" || u.Active == "reloading":
		return Finding{}, true
	case u.Active == "activating":
		return do(problem, "mend what it reports; all of it: journalctl -u "+u.Name), false
	case strings.HasPrefix(u.Name, h.Instance.Unit("provider-")) && !exists(settings):
		return do(fmt.Sprintf("%s does not run: there is no %s", u.Name, settings), "write that file, as modules/README.md has it; then: systemctl start "+u.Name), false
	case u.Active == "failed":
		// A socket fails with the service that it starts, and both remember.
		reset := u.Name
		if name, ok := strings.CutSuffix(u.Name, ".socket"); ok {
			reset += " " + name + ".service"
		}
		return fix(problem, fmt.Sprintf("systemctl reset-failed %s; systemctl restart %s", reset, u.Name)), false
	}
	return fix(problem, "systemctl enable --now "+u.Name), false
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }
