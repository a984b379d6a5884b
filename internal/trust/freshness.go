package trust

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/unixtime"
)

// NamesDocuments is the first format in which a revocation list can name the newest version of the
// cluster's documents. Hosts that understand only earlier formats cannot read such a list.
var NamesDocuments = document.Format{Major: 1, Minor: 1}

// NamedDocuments is the part of a revocation list that names the newest published version of the
// cluster's documents. With it, hosts notice if a provider withholds newer documents, because
// providers cannot change the signed list.
type NamedDocuments struct {
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`        // digest of all envelopes, as by publish.Tree.Digest
	Rev    string `json:"rev,omitempty"` // revision in the envelopes; empty if it differs

	// Due is the time by which hosts must have documents of this version or of a newer version. It
	// allows for the duration of the version's rollout.
	Due unixtime.Time `json:"due"`

	// Back is the serial of the documents to which hosts return if the rollout of this version
	// stops. It is zero if there are no such documents. They have a higher serial than this
	// version, but earlier content. After Due, hosts may no longer have them.
	Back int64 `json:"back,omitempty"`

	// Earlier lists earlier versions that are due before this version, sorted by serial. In a
	// cluster that publishes often, the newest version may never become due, but the earlier
	// versions do.
	Earlier []EarlierDocuments `json:"earlier,omitempty"`
}

// EarlierDocuments names, in a revocation list, a version of the documents that was published
// before the newest one. With it, a host notices that its own documents are too old.
type EarlierDocuments struct {
	Serial int64         `json:"serial"`
	Due    unixtime.Time `json:"due"`
	Back   int64         `json:"back,omitempty"` // as in NamedDocuments
}

// NameDocuments makes the revocation list name next as the newest version of the documents. The
// version that it named before becomes an earlier version. To keep the list short, NameDocuments
// removes an earlier version if the versions before and after it are due at most spacing apart. A
// host may therefore notice up to spacing later that its documents are too old.
func (r *Revocations) NameDocuments(next NamedDocuments, now time.Time, spacing time.Duration) {
	var kept []EarlierDocuments
	for _, e := range r.Documents.all() {
		if e.Serial >= next.Serial || !e.Due.Before(next.Due.Time) {
			continue // next supersedes this version, and is due no later
		}
		if e.Back >= next.Serial {
			e.Back = 0 // another version was published with this serial
		}
		if !e.Due.After(now) {
			kept = nil // e is due, so versions before e no longer matter
		}
		if n := len(kept); n > 1 && e.Due.Sub(kept[n-2].Due.Time) <= spacing {
			kept = kept[:n-1]
		}
		kept = append(kept, e)
	}
	next.Earlier = kept
	r.Documents = &next
}

// all returns the earlier versions and the newest version, sorted by serial. It returns nil if d is
// nil.
func (d *NamedDocuments) all() []EarlierDocuments {
	if d == nil {
		return nil
	}
	return append(slices.Clone(d.Earlier), EarlierDocuments{d.Serial, d.Due, d.Back})
}

// due returns the newest version of the documents that is due at the time now. Hosts must have this
// version or a newer one. If no version is due, the result has the serial zero.
func (d *NamedDocuments) due(now time.Time) (newest EarlierDocuments) {
	for _, e := range d.all() {
		if !now.Before(e.Due.Time) && e.Serial > newest.Serial {
			newest = e
		}
	}
	return newest
}

// Withheld describes a document in force that the revocation list does not allow, for an alarm. A
// provider may be withholding newer documents. The document has one of three faults:
//
//   - It is older than a version that is due.
//   - Hosts returned to it when the rollout of a version stopped, and this version is now due.
//   - It has the serial of a version that is due, but another revision.
type Withheld struct {
	Kind   string `json:"kind"`          // type of the document
	Serial int64  `json:"serial"`        // serial of the document in force
	Rev    string `json:"rev,omitempty"` // revision of the document in force

	List  int64         `json:"list"`  // number of the revocation list
	Named int64         `json:"named"` // serial of the newest version that is due
	Since unixtime.Time `json:"since"` // time at which that version became due
}

// String describes the document for people. It returns "" for a nil Withheld.
func (w *Withheld) String() string {
	if w == nil {
		return ""
	}
	if w.Named < w.Serial {
		return fmt.Sprintf("its %s of serial %d is from before serial %d, whose rollout was to end by %s according to revocation list %d: publish again",
			w.Kind, w.Serial, w.Named, w.Since.UTC().Format(time.RFC3339), w.List)
	}
	if w.Named == w.Serial {
		return fmt.Sprintf("its %s of serial %d has revision %.12q, and revocation list %d names another version with this serial", w.Kind, w.Serial, w.Rev, w.List)
	}
	return fmt.Sprintf("its %s has serial %d, and revocation list %d names serial %d, which was due by %s",
		w.Kind, w.Serial, w.List, w.Named, w.Since.UTC().Format(time.RFC3339))
}

// Withheld returns the oldest document that the revocation list does not allow at the time now. The
// documents in force are given by their envelopes. Withheld returns nil if the list allows all of
// them, or if it names no version.
func (r *Revocations) Withheld(inForce []document.Envelope, now time.Time) *Withheld {
	if r == nil || r.Documents == nil {
		return nil
	}
	due, named := r.Documents.due(now), r.Documents
	oldest := slices.SortedFunc(slices.Values(inForce), func(a, b document.Envelope) int { return cmp.Compare(a.Serial, b.Serial) })
	for _, e := range oldest {
		another := e.Serial == named.Serial && due.Serial == named.Serial && named.Rev != "" && e.Rev != named.Rev
		if e.Serial < due.Serial || another || due.Back != 0 && e.Serial == due.Back {
			return &Withheld{Kind: e.Kind, Serial: e.Serial, Rev: e.Rev, List: r.Number, Named: due.Serial, Since: due.Due}
		}
	}
	return nil
}

// soon is the longest time before NextUpdate at which Ends begins to warn.
const soon = 7 * 24 * time.Hour

// Ends returns the time until a newer revocation list is due, for a warning to operators. It
// returns zero if no warning is needed yet, because at least a week or a quarter of the list's
// lifetime is left. It also returns zero if the newer list is overdue.
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
