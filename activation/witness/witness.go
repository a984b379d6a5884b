// Package witness detects changes to the audit logs of providers. For each log, a host keeps the
// newest checkpoint that it has seen. The next checkpoint of the log must extend that checkpoint. A
// provider that edits or removes rows, or returns to an older state, cannot produce such a
// checkpoint.
package witness

import (
	"fmt"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/unixtime"
)

// Take checks that a provider's audit log still contains all rows that it had before. It compares
// the checkpoint that the provider returned, a signed summary of the log, with the earlier one in
// the host's record of the log. It returns the new record, which contains a fault if the comparison
// fails. Before the first checkpoint, the host's record contains only the provider and the kind.
func Take(w hostdir.Witnessed, answer hostapi.Checkpoint, now unixtime.Time) hostdir.Witnessed {
	refuse := func(format string, args ...any) hostdir.Witnessed {
		w.Refused, w.RefusedKey = answer.Checkpoint, answer.Key
		return faulty(w, fmt.Sprintf(format, args...), now)
	}
	newest, err := hostapi.OpenCheckpoint(answer.Key, answer.Checkpoint)
	if err != nil {
		return refuse("it returned no checkpoint of its audit log: %v", err)
	}
	if w.Key != "" && w.Key != answer.Key {
		return refuse("it returned another audit log, of %d rows, than the one that had %d", newest.Size, w.Size)
	}
	if w.Key != "" {
		before, err := hostapi.OpenCheckpoint(w.Key, w.Checkpoint)
		if err != nil { // an error in this host's own file
			return faulty(w, err.Error(), now)
		}
		if err := newest.Extends(before, answer.Proof); err != nil {
			return refuse("%v", err)
		}
	}
	w.Key, w.Checkpoint, w.Size, w.Seen, w.Withheld = answer.Key, newest.Text, int64(newest.Size), now, unixtime.Time{}
	switch {
	case w.Refused != "": // it had two
		return w
	case answer.Fault != "":
		return faulty(w, answer.Fault, now)
	}
	w.Fault, w.Since = "", unixtime.Time{}
	return w
}

// Lost reports whether a provider process may have lost its state, and with it the decisions that
// it has made. It compares two successive records of the process's audit log, and returns true when
// a fault begins or when the process presents a different log.
func Lost(was, is hostdir.Witnessed) bool {
	return is.Fault != "" && was.Fault == "" || is.RefusedKey != "" && is.RefusedKey != was.RefusedKey
}

// Patience is the longest time for which a provider process may return no checkpoint of a known audit
// log while it answers other requests. After that time the host reports a fault.
const Patience = 6 * time.Hour

// Withhold returns the new record of an audit log after the provider process returned no
// checkpoint. If the process was reached, or has fulfilled a need since the last checkpoint, it is
// running and withholds its log. After Patience, the record contains this as a fault. There is no
// fault if the host has never seen a checkpoint of the log, because older releases have no audit
// log.
func Withhold(w hostdir.Witnessed, reached bool, fulfilled, now unixtime.Time, accepted []hostdir.AcceptedAudit) hostdir.Witnessed {
	since := w.Withheld
	if since.IsZero() {
		since = w.Seen
	}
	if w.Key == "" || !reached && !fulfilled.After(since.Time) {
		return w
	}
	if w.Withheld.IsZero() {
		w.Withheld = unixtime.Unix(now.Seconds()) // rounded as on disk, so that the fault stays the same
	}
	if now.Sub(w.Withheld.Time) < Patience {
		return w
	}
	if w.Fault != "" && !hostdir.Accepts(accepted, w) {
		return w
	}
	fault := "it has returned no checkpoint of its audit log since " + w.Withheld.UTC().Format(time.RFC3339) + ", although it answers"
	if w.Fault != fault { // the acknowledged fault may be another one
		w.Fault, w.Since = fault, now
	}
	return w
}

func faulty(w hostdir.Witnessed, fault string, now unixtime.Time) hostdir.Witnessed {
	if w.Fault == "" {
		w.Since = now
	}
	w.Fault = terminal.Text(fault)
	return w
}
