// Package witness holds providers to their audit logs: a host keeps the newest checkpoint that
// it has seen of each, and the next one must extend it. A provider that edits or removes what
// it decided, or goes back to an older state, cannot return one that does.
package witness

import (
	"fmt"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/checkpoint"
	"github.com/florete/florete/providers/printable"
)

// Take is what a host knows of a log once a provider has returned a checkpoint, from what it
// knew before, which may have nothing but whose log it is.
func Take(w florete.Witnessed, answer api.Checkpoint, now florete.Time) florete.Witnessed {
	refuse := func(format string, args ...any) florete.Witnessed {
		w.Refused, w.RefusedKey = answer.Checkpoint, answer.Key
		return faulty(w, fmt.Sprintf(format, args...), now)
	}
	newest, err := checkpoint.Open(answer.Key, answer.Checkpoint)
	if err != nil {
		return refuse("it returned no checkpoint of its audit log: %v", err)
	}
	if w.Key != "" && w.Key != answer.Key {
		return refuse("it returned another audit log, of %d rows, than the one that had %d", newest.Size, w.Size)
	}
	if w.Key != "" {
		before, err := checkpoint.Open(w.Key, w.Checkpoint)
		if err != nil { // of this host's own file
			return faulty(w, err.Error(), now)
		}
		if err := newest.Extends(before, answer.Proof); err != nil {
			return refuse("%v", err)
		}
	}
	w.Key, w.Checkpoint, w.Size, w.Seen = answer.Key, newest.Text, int64(newest.Size), now
	switch {
	case w.Refused != "": // it had two
		return w
	case answer.Fault != "":
		return faulty(w, answer.Fault, now)
	}
	w.Fault, w.Since = "", florete.Time{}
	return w
}

func faulty(w florete.Witnessed, fault string, now florete.Time) florete.Witnessed {
	if w.Fault == "" {
		w.Since = now
	}
	w.Fault = printable.Text(fault)
	return w
}
