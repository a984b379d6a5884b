package plan

import (
	"cmp"
	"fmt"
	"math"
	"path"

	"github.com/florete/florete/nix/operator/compile"
)

// soonest is the verb of a right about how long recordings are kept. A smaller number permits more.
const soonest = "be deleted after"

// recipient returns the right of the owner of an age key to read the recordings of a service.
func recipient(a at) []fact {
	return one(Right{"key " + shown(a.v), "read recordings of sessions at", "service/" + path.Base(a.id(a.up[1]["id"]))})
}

// sessions describes the sessions at a service, on whichever host.
func sessions(service string) string { return "sessions at service/" + service }

// recordings records what people may do unseen, or seen by fewer, at the services that exist before
// and after a change. It compares services and not documents: a service that moves to another host
// is no new one, of which nobody expects recordings.
func (d *delta) recordings(was, is compile.Topology) {
	for name, service := range was.Services {
		other, both := is.Services[name]
		if !both {
			continue
		}
		records := [2]compile.Service{service, other}
		for s := range records {
			here, there := records[s].Record, records[1-s].Record
			switch {
			case len(there.Recipients) == 0:
			case len(here.Recipients) == 0:
				d.note(side(s), one(Right{sessions(name), "go", "unrecorded"}))
			default:
				for _, key := range without(there.Recipients, here.Recipients) {
					d.note(side(s), one(Right{sessions(name), "go unseen by", "key " + key}))
				}
				d.note(side(s), []fact{{Right: Right{Who: "recordings of " + sessions(name), May: soonest}, seconds: math.MaxInt32 - int64(here.Days)}})
			}
		}
	}
}

// recorded describes a change of the recording of sessions at a service.
func (c Change) recorded(element string, rest []string, value string) (noun, words string) {
	record := object(cmp.Or(c.After, c.Before))
	switch {
	case record != nil && len(rest) == 1:
		var keys []string
		for _, key := range list(record["recipients"]) {
			keys = append(keys, "key "+shown(key))
		}
		words = fmt.Sprintf("records the SSH sessions at %s for %s, and keeps recordings for %s days", element, some(keys, 4), shown(record["days"]))
	case len(rest) > 1 && rest[1] == "days":
		words = fmt.Sprintf("recordings of sessions at %s, days: %s", element, value)
	default:
		words = fmt.Sprintf("encrypts recordings of sessions at %s to key %s", element, unquote.Replace(value))
	}
	return "recording", words
}
