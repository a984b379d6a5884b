package doctor

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/florete/florete"
)

// needs are those that activation has not fulfilled, or not renewed in time. What only
// follows from something else that is wrong is no finding of its own.
func (h *host) needs(context.Context) (string, []Finding) {
	var found []Finding
	fulfilled := 0
	for _, n := range h.manifest.Needs {
		s := h.state(n.ID)
		switch s.State {
		case "fulfilled":
			fulfilled++
			continue
		case "blocked":
			continue
		case "":
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

// cure is what helps a need, by the code of its error (activation/README.md,
// providers/api), unless it follows from another finding.
func (h *host) cure(n florete.Need, s florete.NeedState) (f Finding, ok bool) {
	providers := strings.Join(n.Providers, " or ")
	deploy := do("", fmt.Sprintf("deploy %s and this host from one revision of the flake", providers))
	publish := do("", "publish newer documents: florctl publish --key KEY")
	retry := fix("", h.restart("activate"))
	if s.Error == nil {
		return retry, true
	}
	switch s.Error.Code {
	case "account":
		return retry, len(h.missing()) == 0
	case "host-key": // of identity
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
	case "unavailable", "busy":
		answers := slices.ContainsFunc(h.answers, func(a *answer) bool { return a.err == nil && a.kind == n.Kind && slices.Contains(n.Providers, a.name) })
		return retry, answers
	}
	if s.State == "denied" || s.State == "invalid" || s.Error.Code == "policy-behind" {
		return deploy, true
	}
	return retry, true
}
