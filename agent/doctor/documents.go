package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
)

func (h *host) documents(context.Context) (string, []Finding) {
	if h.unread == nil {
		seen := fmt.Sprintf("manifest of %s, serial %d", h.manifest.Host, h.serial)
		if h.signing != "" {
			seen += ", " + h.signing
		}
		return seen, slices.Concat(h.closure(), h.older(), h.stale(), h.revocations(), h.crls(), h.audit(), h.changes())
	}
	if errors.Is(h.unread, fs.ErrNotExist) {
		return "none accepted", []Finding{fix(
			fmt.Sprintf("no manifest accepted yet in %s", h.Layout.Documents()), h.restart("activate"))}
	}
	return "unreadable", []Finding{h.unreadable(h.unread, h.restart("activate"))}
}

// closure reports a problem if the documents in the host's closure are not in force because they
// were made for a newer release of Florete.
func (h *host) closure() []Finding {
	e, err := h.Layout.ClosureError()
	if err != nil {
		return []Finding{h.unreadable(err, h.restart("activate"))}
	}
	if e == nil {
		return nil
	}
	return []Finding{do(e.Message, "upgrade this host's programs: "+upgrade)}
}

// older reports a problem if another program has replaced the documents by an older generation. To
// recognise this, activation keeps a copy of the documents that it put in force last.
func (h *host) older() []Finding {
	last, err := document.ReadEnvelope(hostdir.Current(h.Layout.DocumentsCopy()), document.DocManifest)
	if err != nil || !last.Newer(h.envelope) {
		return nil
	}
	problem := fmt.Sprintf("the manifest in force has serial %d, and this host had accepted serial %d: an older generation was put in force", h.serial, last.Serial)
	if h.manifest.Documents() != nil {
		return []Finding{fix(problem, h.Instance.Program("flor")+" sync")}
	}
	return []Finding{do(problem, "deploy this host's newest documents")}
}

// changes reports a change that still waits for confirmation, and a change that was undone.
func (h *host) changes() (found []Finding) {
	pending, err := h.Layout.PendingChange()
	if err != nil {
		found = append(found, h.unreadable(err, h.restart("rollback")))
	}
	if pending != nil {
		remedy := fmt.Sprintf("confirm it from a new login, %s sync --confirm %s, or wait until it has gone back", h.Instance.Program("flor"), pending.ID)
		if pending.Unattended {
			remedy = "wait: it is confirmed when a provider answers"
		}
		found = append(found, do(fmt.Sprintf("%s is pending: it goes back at %s", pending, pending.Deadline.UTC().Format(time.RFC3339)), remedy))
	}
	undone, err := h.Layout.Undone()
	if err != nil {
		found = append(found, h.unreadable(err, "rm "+h.Layout.UndoneFile()))
	}
	if undone != nil {
		remedy := "publish documents that are right: they are newer"
		if undone.System != nil {
			remedy = "deploy what is right: " + upgrade
		}
		found = append(found, do(
			fmt.Sprintf("%s went back at %s, for %s: it is not put in force again", undone, undone.Deadline.UTC().Format(time.RFC3339), undone.Missing()),
			remedy))
	}
	return found
}

// install is the remedy for a missing unit or account that belongs to Florete itself.
const install = "run install.sh of this host's bundle (florctl bundle)"

// upgrade is the remedy for a host whose programs are too old.
const upgrade = "nixos-rebuild switch, or install its newest bundle"

// stale reports a problem if the host may have missed newer documents.
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

// revocations reports a problem if the host may still trust identities that were revoked.
func (h *host) revocations() []Finding {
	list, err := trust.ReadRevocations(h.Layout.Revocations(), nil)
	if err != nil {
		return []Finding{h.unreadable(err, h.restart("activate"))}
	}
	found := h.withheld(list)
	if late := list.Reported().Overdue(h.now); late > 0 {
		return append(found, do(
			fmt.Sprintf("a newer revocation list than %d has been due for %s: what was revoked since may still be let in, and whether this host's documents are the newest is not known", list.Number, late),
			"where the signing key is: florctl revoke --renew --key FILE; then see why this host has no newer one: flor doctor on its providers of documents"))
	}
	if ends := list.Reported().Ends(h.now); ends > 0 {
		return append(found, do(
			fmt.Sprintf("a newer revocation list than %d is due in %s", list.Number, ends),
			"where the signing key is: florctl publish, or florctl revoke --renew --key FILE"))
	}
	return found
}

// withheld reports documents in force that are older than the revocation list allows. Usually a
// provider withholds newer documents. If the cause is on this host, which cannot accept newer
// documents or went back from them, the finding names that cause instead of the provider.
func (h *host) withheld(list *trust.Revocations) []Finding {
	w := h.Layout.Withheld(h.manifest, list, h.now)
	if w == nil {
		return nil
	}
	need := h.manifest.Documents()
	problem := fmt.Sprintf("%s: its documents are withheld, or cannot come into force", w)
	if e := h.state(need.ID).Error; e != nil {
		return []Finding{do(problem, fmt.Sprintf("see why need %s is not fulfilled, below: %s", need.ID, e.Code))}
	}
	if undone, err := h.Layout.Undone(); err == nil && undone != nil {
		return []Finding{do(problem, "publish documents that do not cut this host off: it went back from the last ones, see below")}
	}
	return []Finding{do(problem, fmt.Sprintf("the config provider on %s serves this host older documents: ask the operator, who runs florctl status and florctl versions, "+
		"and looks on that host for a state that was restored, or for somebody who broke in; then florctl publish again", strings.Join(need.Providers, ", ")))}
}

// crls reports certificate revocation lists that have expired or will expire soon. Other software
// on the host may refuse every certificate once its list has expired.
func (h *host) crls() (found []Finding) {
	lists, err := h.Layout.CRLs()
	if err != nil {
		return []Finding{h.unreadable(err, h.restart("activate"))}
	}
	for _, l := range lists {
		if h.now.After(l.NextUpdate) {
			found = append(found, do(
				fmt.Sprintf("%s: a newer CRL of issuing CA %x has been due for %s: software that checks it refuses what that issued", h.Layout.CRL(), l.AuthorityKeyId, h.now.Sub(l.NextUpdate).Round(time.Second)),
				"on the provider of certificates: flor doctor; where that CA signs no more: rm "+h.Layout.CRL()))
		}
	}
	return found
}

// audit reports a provider whose audit log does not extend the log that this host saw before.
func (h *host) audit() (found []Finding) {
	for _, a := range h.Layout.AuditFaults() {
		found = append(found, do(
			fmt.Sprintf("audit log of kind %s on %s, since %s: %s", a.Kind, a.Provider, a.Since.UTC().Format(time.RFC3339), a.Fault),
			fmt.Sprintf("find out who changed it: on %s: flor-provider audit --verify; once that is known, on each host that reports it: %s witness accept %s %s --reason …", a.Provider, h.Instance.Program("flor"), a.Provider, a.Kind)))
	}
	return found
}

// unreadable returns the finding for a file that could not be read. If only root may read the file,
// the remedy is to run the command as root.
func (h *host) unreadable(err error, command string) Finding {
	if errors.Is(err, fs.ErrPermission) {
		command = "sudo " + h.Instance.Program("flor") + " doctor"
	}
	return fix(err.Error(), command)
}

// identity checks the SVIDs of the host and its SSH host key.
func (h *host) identity(context.Context) (string, []Finding) {
	var found []Finding
	for _, err := range h.unloaded {
		found = append(found, h.unreadable(err, h.restart("activate")))
	}
	good := 0
	for _, n := range h.manifest.Needs {
		id, err := n.CertID()
		if !hostdir.IsForwarderSVID(n) || err != nil {
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
		case svid.Valid(h.now): // otherwise the check of the clock reports it
			good++
		}
	}
	if f, ok := h.hostKey(); !ok {
		found = append(found, f)
	}
	what := "SSH host key " + h.HostKey
	if h.manifest.Identity.Joins {
		what = "device key " + h.Layout.DeviceKey()
	}
	return fmt.Sprintf("%d valid SVIDs, %s", good, what), append(found, h.ends()...)
}

// admitted checks that a provider has admitted the device of a host that joins.
func (h *host) admitted() (Finding, bool) {
	refused := h.refusedJoin()
	for _, file := range []string{h.Layout.DeviceKey(), h.Layout.Admission()} {
		_, err := os.Stat(file)
		switch {
		case err == nil:
			continue
		case !errors.Is(err, fs.ErrNotExist):
			return h.unreadable(err, "flor join -"), false
		case file == h.Layout.Admission() && exists(h.Layout.JoinRequest()):
			if refused != nil { // the check of the needs reports it
				return Finding{}, true
			}
			return do("this host has requested to join, and waits for an operator's approval",
				fmt.Sprintf("florctl join approve %s, after a comparison with the fingerprint that flor join prints here", h.manifest.Host)), false
		}
		problem := "this host's device is not admitted: "
		if refused != nil {
			problem += refused.Message
		} else {
			problem += "there is no " + file
		}
		return do(problem, fmt.Sprintf("florctl join token create --host %s, then flor join - here", h.manifest.Host)), false
	}
	return Finding{}, true
}

// refusedJoin returns the error with which a provider refused the newest join request, or nil. It
// ignores an older error, because activation repeats a denied request only once an hour.
func (h *host) refusedJoin() *hostdir.NeedError {
	for _, n := range h.manifest.Needs {
		if id, err := n.CertID(); err == nil && id == h.manifest.Identity.ID {
			if newer(h.Layout.JoinRequest(), h.Layout.NeedStateFile(n.ID)) {
				return nil
			}
			if e := h.state(n.ID).Error; e != nil && e.Kind == string(hostapi.Denied) && (e.Code == hostapi.CodeJoin.Name || e.Code == hostapi.CodeToken.Name) {
				return e
			}
		}
	}
	return nil
}

// newer reports whether the first file was written after the second. It returns false if one of the
// files does not exist.
func newer(first, second string) bool {
	a, err := os.Stat(first)
	if err != nil {
		return false
	}
	b, err := os.Stat(second)
	return err == nil && a.ModTime().After(b.ModTime())
}

// hostKey checks that the SSH host key of the host is the key that the topology declares. The host
// proves its identity with this key when it enrols.
func (h *host) hostKey() (Finding, bool) {
	if h.manifest.Identity.Joins {
		return h.admitted()
	}
	declared := h.manifest.Identity.SSHHostKey
	text, err := os.ReadFile(h.HostKey + ".pub")
	if errors.Is(err, fs.ErrNotExist) {
		return do(fmt.Sprintf("no SSH host key %s", h.HostKey),
			fmt.Sprintf("restore it from a backup of this host; a new one, ssh-keygen -A, must go into the flake: hosts.%s.sshHostKey", h.manifest.Host)), false
	}
	if err != nil {
		return h.unreadable(err, "ls -l "+h.HostKey+"*"), false
	}
	words := append(strings.Fields(string(text)), "", "")
	if key := words[0] + " " + words[1]; key != declared {
		return do(
			fmt.Sprintf("SSH host key %s is %q, the manifest declares %q", h.HostKey, key, declared),
			fmt.Sprintf("in the flake: hosts.%s.sshHostKey = %q; then deploy its providers and this host", h.manifest.Host, key)), false
	}
	return Finding{}, true
}
