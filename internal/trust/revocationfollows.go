package trust

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
)

// Reinstated is an item that an operator has removed from a revocation list: the suspension of an
// identity, an SSH host key, or a certificate. It does not stand for a revoked identity that was
// reinstated. The entry of such an identity stays in the list, with the time of the reinstatement
// as ValidAfter.
type Reinstated struct {
	ID          spiffe.ID `json:"id,omitzero"`
	Key         string    `json:"key,omitempty"`         // fingerprint of an SSH host key
	Certificate string    `json:"certificate,omitempty"` // serial number

	Number int64         `json:"number"` // number of the first list without the item
	Time   unixtime.Time `json:"time"`   // time at which that list was signed
}

func (r Reinstated) String() string {
	switch {
	case r.Key != "":
		return "SSH host key " + r.Key
	case r.Certificate != "":
		return "certificate " + r.Certificate
	}
	return r.ID.Short()
}

// outlived is the time after which all certificates that a list revokes have expired. SSH host keys
// do not expire.
const outlived = MaxLifetime + Backdated

// Lacking returns the items of an older list that this list neither revokes nor names as
// reinstated. If there are any, this list does not continue the older one, and a reader that has
// the older list must refuse this one. Lacking returns nothing if the older list is nil, or if this
// list is so much newer that it need not name the items any more.
func (r *Revocations) Lacking(list *Revocations) (entries []Revocation, certificates []RevokedCertificate) {
	if list == nil || r.Signed.After(list.Signed.Add(outlived).Time) {
		return nil, nil
	}
	for _, e := range list.Entries {
		is := r.ids[e.ID]
		if is == nil {
			is = &Revocation{ValidAfter: unixtime.Of(time.Unix(0, 0))} // revokes nothing
		}
		var lacks Revocation
		reinstated := !is.ValidAfter.IsZero() && !is.ValidAfter.Before(list.Signed.Time)
		if !e.ID.IsZero() && !is.permanent() && !reinstated {
			ended := !e.ValidAfter.IsZero() && r.Signed.After(e.ValidAfter.Add(outlived).Time)
			switch {
			case e.permanent(), !e.ValidAfter.IsZero() && is.ValidAfter.Before(e.ValidAfter.Time) && !ended,
				e.Suspended && !is.Suspended && !r.reinstated(list, Reinstated{ID: e.ID}):
				lacks = Revocation{ID: e.ID, ValidAfter: e.ValidAfter, Suspended: e.Suspended}
			}
		}
		for _, key := range e.EnrolKeyFingerprints {
			// A key proves only its node, and the revoked node is not accepted with any key.
			covered := !e.ID.IsZero() && (reinstated || is.permanent())
			if !r.keys[key] && !covered && !r.reinstated(list, Reinstated{Key: key}) {
				lacks.ID = e.ID
				lacks.EnrolKeyFingerprints = append(lacks.EnrolKeyFingerprints, key)
			}
		}
		if !lacks.ID.IsZero() || len(lacks.EnrolKeyFingerprints) > 0 {
			entries = append(entries, lacks)
		}
	}
	for _, c := range list.Certificates {
		if !r.certs[c.Serial] && c.Until.After(r.Signed.Time) && !r.reinstated(list, Reinstated{Certificate: c.Serial}) {
			certificates = append(certificates, c)
		}
	}
	return entries, certificates
}

// permanent reports whether the entry revokes all certificates of the identity until an operator
// reinstates the identity.
func (e Revocation) permanent() bool { return e.ValidAfter.IsZero() && !e.Suspended }

// reinstated reports whether the list r names an item as reinstated since an earlier list. The
// argument after is the earlier list.
func (r *Revocations) reinstated(after *Revocations, what Reinstated) bool {
	return slices.ContainsFunc(r.Reinstated, func(is Reinstated) bool {
		return is.ID == what.ID && is.Key == what.Key && is.Certificate == what.Certificate && is.Number > after.Number
	})
}

// Digest returns the digest of the revocation list's text, which its successor contains as Former.
func (r *Revocations) Digest() string { return document.Digest([]byte(r.signed.List)) }

// Forked returns an error if two lists cannot belong to the same sequence of lists. This means that
// both have the same number but different texts, or that this list has the next number but names
// another predecessor. For all other numbers, Forked cannot decide and returns nil.
func (r *Revocations) Forked(list *Revocations) error {
	another := false
	switch {
	case list == nil:
	case r.Number == list.Number:
		another = r.signed.List != list.signed.List
	case r.Number == list.Number+1 && r.Former != "":
		another = r.Former != list.Digest()
	}
	if !another {
		return nil
	}
	return fmt.Errorf("revocation list %d does not continue list %d of %s, but another one signed beside it: two operators changed the list at once, or a provider hid a list from one of them: an operator continues both with florctl revoke --renew",
		r.Number, list.Number, list.Signed.UTC().Format(time.RFC3339))
}

// Follows returns an error if this list does not continue the given older list. It also returns an
// error if this list no longer revokes an item of the older list and does not name the item as
// reinstated. The older list may be nil.
func (r *Revocations) Follows(list *Revocations) error {
	if dropped := r.drops(list); dropped != nil {
		return dropped
	}
	return r.Forked(list)
}

// drops returns an error if the list r has lost items that an older list revokes. The argument list
// is the older list. It may be nil.
func (r *Revocations) drops(list *Revocations) error {
	entries, certificates := r.Lacking(list)
	var what []string
	for _, e := range entries {
		if !e.ID.IsZero() {
			what = append(what, e.ID.Short())
		} else {
			what = append(what, e.EnrolKeyFingerprints...)
		}
	}
	for _, c := range certificates {
		what = append(what, "certificate "+c.Serial)
	}
	if len(what) == 0 {
		return nil
	}
	return fmt.Errorf("revocation list %d drops %s, which list %d revokes and nobody reinstated: an operator revokes or reinstates it with florctl, whose list then says so",
		r.Number, strings.Join(what[:min(len(what), 5)], ", "), list.Number)
}

// NameReinstated records in the list that an operator has removed an item from it. The list must be
// the first one without this item.
func (r *Revocations) NameReinstated(what Reinstated) {
	what.Number, what.Time = r.Number, r.Signed
	r.Reinstated = append(slices.DeleteFunc(r.Reinstated, func(is Reinstated) bool {
		return is.ID == what.ID && is.Key == what.Key && is.Certificate == what.Certificate
	}), what)
	slices.SortFunc(r.Reinstated, func(a, b Reinstated) int { return cmp.Compare(a.String(), b.String()) })
}

// KeepReinstated copies the reinstated items that the preceding list names to r. It leaves out
// those that are so old that no host needs them.
func (r *Revocations) KeepReinstated(list *Revocations) {
	for _, is := range list.Reinstated {
		if !r.Signed.After(is.Time.Add(outlived).Time) {
			r.Reinstated = append(r.Reinstated, is)
		}
	}
}
