package witness

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

// maxReason is the maximum length of a reason in bytes.
const maxReason = 200

// Accept records that a person has acknowledged the present fault of a provider's audit log, which
// ends the alarm. A later fault raises a new alarm. The acknowledgement must contain a reason of 1
// to 200 bytes. Accept returns an error if every fault was already acknowledged, or if there is
// none.
func Accept(l hostdir.Layout, provider, kind string, word hostdir.AcceptedAudit) error {
	if word.Reason = strings.TrimSpace(word.Reason); word.Reason == "" || len(word.Reason) > maxReason {
		return fmt.Errorf("a reason of %d bytes, want one of 1 to %d: what was found out about it", len(word.Reason), maxReason)
	}
	known, err := l.Witnessed()
	if err != nil {
		return err
	}
	all := l.Accepted()
	for _, w := range known {
		if w.Provider != provider || w.Kind != kind {
			continue
		}
		if w.Fault == "" || hostdir.Accepts(all, w) {
			return fmt.Errorf("audit log of kind %s on %s: nothing is wrong with it: flor witness", kind, provider)
		}
		word.ReportedAudit = hostdir.ReportedAudit{Provider: provider, Kind: kind, Fault: w.Fault, Since: w.Since}
		all = append(all, word)
		b, err := json.Marshal(all[max(0, len(all)-hostdir.MaxAccepted):])
		if err != nil {
			return err
		}
		return atomicfile.File(l.AcceptedFile(), append(b, '\n'), 0o644)
	}
	return fmt.Errorf("audit log of kind %s on %s: this host has not witnessed one: flor witness", kind, provider)
}

// GoOn returns the record of an audit log that the next checkpoint must extend. Normally this is
// the host's current record. If a person has acknowledged a checkpoint that did not extend the
// earlier one, GoOn returns a record of the acknowledged checkpoint, so that the log can continue
// from there.
func GoOn(w hostdir.Witnessed, accepted []hostdir.AcceptedAudit) hostdir.Witnessed {
	if w.Refused == "" || !hostdir.Accepts(accepted, w) {
		return w
	}
	is := hostdir.Witnessed{Provider: w.Provider, Kind: w.Kind}
	if c, err := hostapi.OpenCheckpoint(w.RefusedKey, w.Refused); err == nil {
		is.Key, is.Checkpoint, is.Size, is.Seen = w.RefusedKey, c.Text, int64(c.Size), w.Seen
	}
	return is
}
