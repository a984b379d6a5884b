package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/florete/florete/agent/forward/identity"
)

func (h *host) documents(context.Context) (string, []Finding) {
	if h.unread == nil {
		return fmt.Sprintf("manifest of %s, serial %d", h.manifest.Host, h.serial), append(h.closure(), h.stale()...)
	}
	if errors.Is(h.unread, fs.ErrNotExist) {
		return "none accepted", []Finding{fix(
			fmt.Sprintf("no manifest accepted yet in %s", h.Layout.Documents()), h.restart("activate"))}
	}
	return "unreadable", []Finding{h.unreadable(h.unread, h.restart("activate"))}
}

// closure is that of a newer release, which is not in force.
func (h *host) closure() []Finding {
	e, err := h.Layout.ClosureError()
	if err != nil {
		return []Finding{h.unreadable(err, h.restart("activate"))}
	}
	if e == nil {
		return nil
	}
	return []Finding{do(e.Message, upgrade)}
}

// upgrade is what a person must do about a newer format.
const upgrade = "upgrade this host's programs: nixos-rebuild switch, or install its newest bundle"

// stale is the alarm of a host that may miss what was decided.
func (h *host) stale() []Finding {
	d := h.Layout.Stale(h.manifest, h.now)
	if d == 0 {
		return nil
	}
	var on []string
	for _, n := range h.manifest.Needs {
		if n.Renew.StaleAfter > 0 {
			on = append(on, n.Providers...)
		}
	}
	return []Finding{do(
		fmt.Sprintf("no provider has answered about this host's documents for %s: they may be outdated", d),
		fmt.Sprintf("see why need config-documents is not fulfilled, below, and on %s: flor doctor; or deploy this host's documents", strings.Join(on, ", ")))}
}

// unreadable is the finding of an error while reading, which may only be that
// another account is needed.
func (h *host) unreadable(err error, command string) Finding {
	if errors.Is(err, fs.ErrPermission) {
		command = "sudo " + h.Instance.Program("flor") + " doctor"
	}
	return fix(err.Error(), command)
}

// identity is what the host proves itself with: its SVIDs, and the SSH host key.
func (h *host) identity(context.Context) (string, []Finding) {
	var found []Finding
	for _, err := range h.unloaded {
		found = append(found, h.unreadable(err, h.restart("activate")))
	}
	good := 0
	for _, n := range h.manifest.Needs {
		id, err := n.CertID()
		if !identity.Delivers(n) || err != nil {
			continue
		}
		svid := h.identities.SVID(id)
		switch {
		case svid == nil && len(h.unloaded) == 0 && h.state(n.ID).State == "fulfilled":
			found = append(found, fix(fmt.Sprintf("the SVID of %s is gone from %s", id.Short(), h.Layout.Need(n.ID)), h.restart("activate")))
		case svid == nil:
		case h.now.After(svid.Cert.Leaf.NotAfter):
			ago := h.now.Sub(svid.Cert.Leaf.NotAfter).Round(time.Second)
			found = append(found, fix(fmt.Sprintf("the SVID of %s expired %s ago", id.Short(), ago), h.restart("activate")))
		case svid.Valid(h.now): // else the clock's finding
			good++
		}
	}
	if f, ok := h.hostKey(); !ok {
		found = append(found, f)
	}
	return fmt.Sprintf("%d valid SVIDs, SSH host key %s", good, h.HostKey), append(found, h.ends()...)
}

// hostKey must be the one that the manifest declares: enrolment proves it.
func (h *host) hostKey() (Finding, bool) {
	declared := h.manifest.Identity.SSHHostKey
	text, err := os.ReadFile(h.HostKey + ".pub")
	if errors.Is(err, fs.ErrNotExist) {
		return fix(fmt.Sprintf("no SSH host key %s", h.HostKey), "ssh-keygen -A"), false
	}
	if err != nil {
		return h.unreadable(err, "ssh-keygen -A"), false
	}
	words := append(strings.Fields(string(text)), "", "")
	if key := words[0] + " " + words[1]; key != declared {
		return do(
			fmt.Sprintf("SSH host key %s is %q, the manifest declares %q", h.HostKey, key, declared),
			fmt.Sprintf("in the flake: hosts.%s.sshHostKey = %q; then deploy its providers and this host", h.manifest.Host, key)), false
	}
	return Finding{}, true
}
