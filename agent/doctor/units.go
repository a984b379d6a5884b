package doctor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/hostreport"
)

// units checks that the systemd units of the host run and are started at boot.
func (h *host) units(ctx context.Context) (string, []Finding) {
	all, err := units.Expected(ctx, h.Units, h.Instance, h.manifest)
	if errors.Is(err, units.ErrNoSystemd) {
		return err.Error(), nil
	}
	if err != nil {
		return "no answer", []Finding{fix(err.Error(), "systemctl start dbus.service")}
	}
	if h.identities.SVID(h.manifest.Identity.ID) == nil { // the forwarder waits for the node's SVID
		all = slices.DeleteFunc(all, func(u units.Unit) bool { return u.Name == h.Instance.Unit("agent.service") })
	}
	var found []Finding
	for _, u := range all {
		if f, ok := h.unit(u); !ok {
			found = append(found, f)
		}
	}
	return fmt.Sprintf("%d of %d active", len(all)-len(found), len(all)), found
}

// unit checks one unit. If the unit has no problem, ok is true.
func (h *host) unit(u units.Unit) (Finding, bool) {
	problem := fmt.Sprintf("%s is %s (%s)", u.Name, u.Active, u.Sub)
	if u.Active != "inactive" && u.Log != "" { // otherwise a person has stopped the unit
		problem += ": " + u.Log
	}
	settings := filepath.Join(h.Etc, "provider.hujson")
	judged := hostreport.Unit{Name: u.Name, Active: u.Active, Sub: u.Sub, Text: u.Text}
	switch {
	case u.Load == "not-found":
		return do(u.Name+" is not installed", install), false
	case u.Load == "masked":
		return fix(u.Name+" is masked", fmt.Sprintf("systemctl unmask %s && systemctl start %[1]s", u.Name)), false
	case judged.Waits():
		return do(u.Name+" is "+u.Text, "what that says"), false
	case u.Active == "active" && u.File == "disabled":
		return fix(u.Name+" does not start at boot", "systemctl enable "+u.Name), false
	case u.Active == "active" && u.Descriptors > 0 && u.Descriptors < fewDescriptors:
		return do(fmt.Sprintf("%s may open only %d files and connections, want %d at least", u.Name, u.Descriptors, fewDescriptors),
			fmt.Sprintf("take LimitNOFILE out of what overrides the unit (systemctl cat %[1]s), then: systemctl daemon-reload && systemctl restart %[1]s", u.Name)), false
	case judged.Runs():
		return Finding{}, true
	case u.Name == h.Instance.Unit("store.service") && !exists(filepath.Join(h.Etc, "store", "member.key")):
		return do(fmt.Sprintf("%s does not run: there is no %s", u.Name, filepath.Join(h.Etc, "store", "member.key")), "on the operator's machine, run florctl store issue for this host, and put what it writes there"), false
	case strings.HasPrefix(u.Name, h.Instance.Unit("provider-")) && secret(settings):
		return fix(fmt.Sprintf("%s: %s is for its owner alone, and each kind has an account of its own", problem, settings), fmt.Sprintf("chmod 0644 %s; systemctl restart %s", settings, u.Name)), false
	case u.Active == "activating":
		return do(problem, "mend what it reports; all of it: journalctl -u "+u.Name), false
	case u.Active == "failed":
		// If a socket has failed together with its service, both units must be reset.
		reset := u.Name
		if name, ok := strings.CutSuffix(u.Name, ".socket"); ok {
			reset += " " + name + ".service"
		}
		return fix(problem, fmt.Sprintf("systemctl reset-failed %s; systemctl restart %s", reset, u.Name)), false
	}
	return fix(problem, "systemctl enable --now "+u.Name), false
}

// fewDescriptors is the lowest acceptable limit of open files of a unit. It is the limit that
// systemd sets by default.
const fewDescriptors = 1024

// secret reports whether a file exists that is not readable by every account.
func secret(path string) bool {
	fi, err := os.Stat(path)
	return err == nil && fi.Mode().Perm()&0o004 == 0
}

func exists(path string) bool { _, err := os.Stat(path); return err == nil }
