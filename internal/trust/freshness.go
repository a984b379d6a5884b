package trust

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/unixtime"
)

// NamesDocuments is the format since which revocation lists name documents.
var NamesDocuments = document.Format{Major: 1, Minor: 1}

// NamedDocuments names, in a revocation list, the newest published version of the cluster's
// documents. Because the list is signed, a provider cannot hide from hosts that there are newer
// documents than those that it offers.
type NamedDocuments struct {
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`        // of all envelopes of the version, publish.Tree.Digest
	Rev    string `json:"rev,omitempty"` // revision in the envelopes; empty if it is not the same in all

	// Due is the time from which hosts must have documents of this version or a newer one. It
	// leaves time for the version's rollout.
	Due unixtime.Time `json:"due"`

	// Earlier names versions that were published before and that are due before this one, by
	// serial. Without them, hosts of a cluster that publishes often would never find a version due.
	Earlier []EarlierDocuments `json:"earlier,omitempty"`
}

// EarlierDocuments names a version that was published before the newest one.
type EarlierDocuments struct {
	Serial int64         `json:"serial"`
	Due    unixtime.Time `json:"due"`
}

// NameDocuments names a newer version in r. Of earlier versions it keeps only so many that no host
// may have older documents for longer than spacing after they were due. A cluster that publishes
// often therefore does not fill the list.
func (r *Revocations) NameDocuments(next NamedDocuments, now time.Time, spacing time.Duration) {
	var kept []EarlierDocuments
	for _, e := range r.Documents.all() {
		if e.Serial >= next.Serial || !e.Due.Before(next.Due.Time) {
			continue // the next one is due first
		}
		if !e.Due.After(now) {
			kept = nil // this one includes those before
		}
		if n := len(kept); n > 1 && e.Due.Sub(kept[n-2].Due.Time) <= spacing {
			kept = kept[:n-1]
		}
		kept = append(kept, e)
	}
	next.Earlier = kept
	r.Documents = &next
}

// all returns the earlier versions and the newest one, by serial. It returns none for nil.
func (d *NamedDocuments) all() []EarlierDocuments {
	if d == nil {
		return nil
	}
	return append(slices.Clone(d.Earlier), EarlierDocuments{d.Serial, d.Due})
}

// due returns the newest version that hosts must have at the time now. The serial is zero if no
// version is due.
func (d *NamedDocuments) due(now time.Time) (newest EarlierDocuments) {
	for _, e := range d.all() {
		if !now.Before(e.Due.Time) && e.Serial > newest.Serial {
			newest = e
		}
	}
	return newest
}

// Withheld describes a document in force that is older than the revocation list allows, or that is
// not the document which the operator published under its serial. A provider may withhold the
// documents that the list names.
type Withheld struct {
	Kind   string `json:"kind"`   // type of the document
	Serial int64  `json:"serial"` // serial of the document in force
	Rev    string `json:"rev,omitempty"`

	List  int64         `json:"list"`  // number of the revocation list
	Named int64         `json:"named"` // serial that the list names
	Since unixtime.Time `json:"since"` // time at which that version became due
}

// String describes the document. It is empty for nil.
func (w *Withheld) String() string {
	if w == nil {
		return ""
	}
	if w.Named == w.Serial {
		return fmt.Sprintf("its %s of serial %d has revision %.12q, and revocation list %d names another version with this serial", w.Kind, w.Serial, w.Rev, w.List)
	}
	return fmt.Sprintf("its %s has serial %d, and revocation list %d names serial %d, which was due by %s",
		w.Kind, w.Serial, w.List, w.Named, w.Since.UTC().Format(time.RFC3339))
}

// Withheld returns the oldest of the documents in force, given by their envelopes, that the list no
// longer allows at the time now. It returns nil if the list allows all of them, or names none.
func (r *Revocations) Withheld(inForce []document.Envelope, now time.Time) *Withheld {
	if r == nil || r.Documents == nil {
		return nil
	}
	due, named := r.Documents.due(now), r.Documents
	oldest := slices.SortedFunc(slices.Values(inForce), func(a, b document.Envelope) int { return cmp.Compare(a.Serial, b.Serial) })
	for _, e := range oldest {
		another := e.Serial == named.Serial && due.Serial == named.Serial && named.Rev != "" && e.Rev != named.Rev
		if e.Serial < due.Serial || another {
			return &Withheld{Kind: e.Kind, Serial: e.Serial, Rev: e.Rev, List: r.Number, Named: due.Serial, Since: due.Due}
		}
	}
	return nil
}

// soon is the longest time before NextUpdate at which a list counts as about to end.
const soon = 7 * 24 * time.Hour

// Ends returns the time until a newer list is due, if that is less than a week and less than a
// quarter of the list's lifetime. It returns zero otherwise, and if the list is overdue.
func (r *ReportedRevocations) Ends(now time.Time) time.Duration {
	if r == nil || r.Signed.IsZero() || r.NextUpdate.IsZero() {
		return 0
	}
	left := r.NextUpdate.Sub(now)
	if left < 0 || left >= min(soon, r.NextUpdate.Sub(r.Signed.Time)/4) {
		return 0
	}
	return max(left.Round(time.Second), time.Second)
}
