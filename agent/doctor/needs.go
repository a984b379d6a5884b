package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

// needs reports each need that is not fulfilled or was not renewed in time. It leaves out a need
// whose failure another finding already explains.
func (h *host) needs(context.Context) (string, []Finding) {
	var found []Finding
	fulfilled := 0
	for _, n := range h.manifest.Needs {
		s := h.state(n.ID)
		switch {
		case s.State.Well(s.Error):
			fulfilled++
			continue
		case s.State == hostdir.NeedFulfilled:
			fulfilled++
			found = append(found, unnotified(n, *s.Error))
			continue
		case s.State == hostdir.NeedBlocked:
			continue
		case s.State == "":
			found = append(found, fix(fmt.Sprintf("need %s was never requested", n.ID), h.restart("activate")))
			continue
		}
		if cure, ok := h.cure(n, s); ok {
			cure.Problem = fmt.Sprintf("need %s is %s", n.ID, s.State)
			if s.Error != nil {
				cure.Problem += fmt.Sprintf(": %s (%s): %s", s.Error.Kind, s.Error.Code, s.Error.Message)
			}
			found = append(found, cure)
		}
	}
	return fmt.Sprintf("%d of %d fulfilled", fulfilled, len(h.manifest.Needs)), found
}

// unnotified returns the finding for a unit that was not restarted after files were delivered, and
// therefore still uses the old files.
func unnotified(n document.Need, e hostdir.NeedError) Finding {
	what := remedy(e.Message)
	if strings.Contains(e.Message, "not found") {
		what = "name it in the flake as systemctl list-unit-files has it here, publish and deploy"
	}
	return do(fmt.Sprintf("need %s is delivered, but a unit of it was not restarted: %s", n.ID, e.Message), what)
}

// commands lists the beginnings of commands with which an error message may end. They are used to
// find the remedy in a message.
var commands = []string{"flor ", "florctl ", "flor-provider ", "systemctl ", "rm ", "ssh ", "see "}

// remedy returns the remedy at the end of an error message, which is a command or a reference to a
// page.
func remedy(message string) string {
	for _, c := range commands {
		if i := strings.LastIndex(message, ": "+c); i >= 0 {
			return message[i+2:]
		}
	}
	return "what the message says"
}

// cure returns the finding with the remedy for a need that is not fulfilled. The remedy depends on
// the code of the error (docs/reference/errors.md). The result ok is false if another finding
// already explains the error.
func (h *host) cure(n document.Need, s hostdir.NeedState) (f Finding, ok bool) {
	providers := strings.Join(n.Providers, " or ")
	deploy := do("", fmt.Sprintf("deploy %s and this host from one revision of the flake", providers))
	publish := do("", "publish newer documents: florctl publish --key KEY")
	retry := fix("", h.Instance.Program("flor")+" refetch "+n.ID)
	if s.Error == nil {
		return retry, true
	}
	switch s.Error.Code {
	case "account":
		return retry, len(h.missing()) == 0
	case "host-key": // the check of the identity reports it
		return f, false
	case "disk":
		_, found := h.disk(context.Background())
		return retry, len(found) == 0
	case "clock":
		return fix("", setClock()), true
	case "missing":
		if n.Kind == "config" {
			return publish, true
		}
		return do("", "what the message says, on "+providers), true
	case "newer-format":
		return do("", fmt.Sprintf("upgrade what the message says, this host's programs or those of %s: %s", providers, upgrade)), true
	case "older-document", "tampered", "foreign-document":
		return publish, true
	case "internal", "store":
		return do("", examineOn(n.Providers[0])), true
	case "join", "token": // the check of the identity may report a host that is not admitted
		_, admitted := h.admitted()
		return do("", remedy(s.Error.Message)), admitted
	case "tpm", "revoked", "list-behind", "untrusted", "held", "change-pending", "change-unarmed", "device-key", "refused":
		return do("", remedy(s.Error.Message)), true
	case "busy":
		return do("", fmt.Sprintf("wait: it is requested again at %s", s.Next.UTC().Format(time.RFC3339))), true
	case "unavailable":
		answers := slices.ContainsFunc(h.answers, func(a *answer) bool { return a.err == nil && a.kind == n.Kind && slices.Contains(n.Providers, a.name) })
		return retry, answers
	}
	if s.State.Lasting() || s.Error.Code == "policy-behind" {
		return deploy, true
	}
	return retry, true
}
