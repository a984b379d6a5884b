package control

import (
	"maps"
	"slices"
	"time"

	"github.com/florete/florete/internal/trust"
)

// listChange is an operator's change to the revocation list, with the identities, SSH host keys and
// certificates that it affects.
type listChange struct {
	event   string // in the audit log
	targets []string
}

// These are the events of a listChange.
const (
	eventRevoke    = "revoke"
	eventReinstate = "reinstate"
	eventSuspend   = "suspend"
	eventUnsuspend = "unsuspend"
	eventRenew     = "renew-revocations" // signed anew, as it was
)

// forever is the time at which the revocation of an identity or a key ends. It is so late that the
// revocation does not end by itself.
var forever = time.Unix(1<<40, 0)

// listChanges returns the changes that operators made between two revocation lists, of which last is
// the earlier. If there was no earlier list, last is nil. The removal of an expired entry is not a
// change.
func listChanges(last, next *trust.Revocations) (all []listChange) {
	was, is := revoked(last), revoked(next)
	paused, pauses := suspended(last), suspended(next)
	of := map[string][]string{}
	for what, until := range is {
		if until.After(was[what]) {
			of[eventRevoke] = append(of[eventRevoke], what+issuedBefore(next, what))
		}
	}
	for what, until := range was {
		if is[what].Before(until) && until.After(next.Signed.Time) {
			of[eventReinstate] = append(of[eventReinstate], what)
		}
	}
	for what := range pauses {
		if !paused[what] {
			of[eventSuspend] = append(of[eventSuspend], what)
		}
	}
	for what := range paused {
		if !pauses[what] && !is[what].Equal(forever) { // else it was revoked, which is more
			of[eventUnsuspend] = append(of[eventUnsuspend], what)
		}
	}
	for _, event := range slices.Sorted(maps.Keys(of)) {
		slices.Sort(of[event])
		all = append(all, listChange{event, of[event]})
	}
	if len(all) == 0 {
		return []listChange{{event: eventRenew}}
	}
	return all
}

// revoked returns the targets that a list revokes. The value of a target is the time after which no
// matching certificate can be valid.
func revoked(list *trust.Revocations) map[string]time.Time {
	all := map[string]time.Time{}
	if list == nil {
		return all
	}
	for _, e := range list.Entries {
		if !e.ValidAfter.IsZero() {
			all[e.ID.String()] = e.ValidAfter.Add(trust.MaxLifetime + trust.Backdated).Time
		} else if !e.ID.IsZero() && !e.Suspended {
			all[e.ID.String()] = forever
		}
		for _, key := range e.EnrolKeyFingerprints {
			all["SSH host key "+key] = forever
		}
	}
	for _, c := range list.Certificates {
		all["certificate "+c.Serial] = c.Until.Time
	}
	return all
}

func suspended(list *trust.Revocations) map[string]bool {
	all := map[string]bool{}
	if list != nil {
		for _, e := range list.Entries {
			if e.Suspended {
				all[e.ID.String()] = true
			}
		}
	}
	return all
}

// issuedBefore describes which certificates of an identity are revoked. The text is empty if all
// are.
func issuedBefore(list *trust.Revocations, id string) string {
	for _, e := range list.Entries {
		if e.ID.String() == id && !e.ValidAfter.IsZero() {
			return " (issued before " + e.ValidAfter.UTC().Format(time.RFC3339) + ")"
		}
	}
	return ""
}
