// Package revocation changes and signs a cluster's revocation list. Package published sends the list
// to the providers. Hosts read it with trust.Revocations.
package revocation

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/ca"
)

// Lifetime is the default lifetime of a revocation list. Hosts that use an older list raise an
// alarm.
const Lifetime = 30 * 24 * time.Hour

// FirstLifetime is the lifetime of a list that florctl publish makes because a cluster has none. It
// is long, so that a cluster that never revoked anything may go without a publication for months.
// The next list of florctl revoke has its own lifetime again.
const FirstLifetime = 365 * 24 * time.Hour

// Target lists everything that one operation of an operator revokes or reinstates: an identity, SSH
// host keys and certificates.
type Target struct {
	ID   spiffe.ID // zero for none
	Keys []string  // fingerprints of SSH host keys, which belong to the ID if there is one

	// Before lists nodes. Their certificates that were issued until now are revoked, and
	// certificates that they receive later are valid.
	Before []spiffe.ID

	Certificates []string // serial numbers of certificates
}

// Next begins the revocation list that follows a given list. The new list has the next number and
// the same entries and documents, and is not signed. It leaves out entries that no valid
// certificate can match any more. If the given list is nil, the result is the first list of the
// cluster. A further list is due after the given lifetime.
func Next(list *trust.Revocations, cluster string, now time.Time, lifetime time.Duration) *trust.Revocations {
	next := &trust.Revocations{
		Schema: trust.RevocationsSchema, Cluster: cluster, Number: list.InForce() + 1,
		Signed: unixtime.Of(now), NextUpdate: unixtime.Of(now.Add(lifetime)),
		Entries: []trust.Revocation{}, Certificates: []trust.RevokedCertificate{},
	}
	if list == nil {
		return next
	}
	next.KeepReinstated(list)
	next.Former, next.Documents = list.Digest(), list.Documents
	ended := now.Add(-trust.MaxLifetime - trust.Backdated)
	for _, e := range list.Entries {
		if len(e.EnrolKeyFingerprints) > 0 || e.Suspended || e.ValidAfter.IsZero() || e.ValidAfter.After(ended) {
			e.EnrolKeyFingerprints = slices.Clone(e.EnrolKeyFingerprints)
			next.Entries = append(next.Entries, e)
		}
	}
	for _, c := range list.Certificates {
		if c.Until.After(now) {
			next.Certificates = append(next.Certificates, c)
		}
	}
	return next
}

// Continue is like Next, but the new list also revokes what the lists of other operators revoke that
// the given list does not follow. The number ahead is that of a list which only hosts have, or zero.
// Then the new list has the number after it, and does not say which list it follows.
func Continue(list *trust.Revocations, others []*trust.Revocations, ahead int64, cluster string, now time.Time, lifetime time.Duration) *trust.Revocations {
	next := Next(list, cluster, now, lifetime)
	for _, other := range others {
		keep(next, list, other)
	}
	if ahead != 0 {
		next.Number, next.Former = ahead+1, ""
	}
	return next
}

// keep makes a new revocation list contain the revocations of another list as well. This is needed
// if two operators have published lists at the same time, so that neither list follows the other.
// The new list, next, is one that Next made from the list before. The function keep adds to it the
// entries of the list other that before lacks. A list also tells hosts which published version of
// the documents is the newest, and the new list then tells the newer of both. It no longer says
// which list it follows, so that hosts with either list accept it.
func keep(next, before, other *trust.Revocations) {
	next.Former = ""
	if d := other.Documents; d != nil && (next.Documents == nil || d.Serial > next.Documents.Serial) {
		next.Documents = d
	}
	entries, certificates := before.Lacking(other)
	for _, lacks := range entries {
		was := len(next.Entries)
		e := entry(next, lacks.ID)
		switch {
		case lacks.ID.IsZero():
		case len(next.Entries) == was && e.ValidAfter.IsZero() && !e.Suspended: // for good already, by a third list
		case lacks.ValidAfter.IsZero() && !lacks.Suspended:
			e.ValidAfter, e.Suspended = unixtime.Time{}, false
		default:
			if lacks.ValidAfter.After(e.ValidAfter.Time) {
				e.ValidAfter = lacks.ValidAfter
			}
			e.Suspended = e.Suspended || lacks.Suspended
		}
		e.EnrolKeyFingerprints = union(e.EnrolKeyFingerprints, lacks.EnrolKeyFingerprints)
	}
	for _, lacks := range certificates {
		if !slices.ContainsFunc(next.Certificates, func(c trust.RevokedCertificate) bool { return c.Serial == lacks.Serial }) {
			next.Certificates = append(next.Certificates, lacks)
		}
	}
	slices.SortFunc(next.Certificates, func(a, b trust.RevokedCertificate) int { return cmp.Compare(a.Serial, b.Serial) })
}

// Revoke adds a target to a list that was made by Next.
func Revoke(list *trust.Revocations, t Target) {
	if !t.ID.IsZero() || len(t.Keys) > 0 {
		e := entry(list, t.ID)
		e.ValidAfter, e.Suspended = unixtime.Time{}, false
		e.EnrolKeyFingerprints = union(e.EnrolKeyFingerprints, t.Keys)
	}
	for _, id := range t.Before {
		was := len(list.Entries)
		if e := entry(list, id); len(list.Entries) > was || e.Suspended || !e.ValidAfter.IsZero() {
			e.ValidAfter = list.Signed
		}
	}
	// A serial number does not tell when its certificate ends. The certificate of a CA may last as
	// long as the root (florctl ca sign --lifetime), and would be valid again if it were forgotten
	// earlier.
	until := list.Signed.Add(ca.RootLifetime)
	for _, serial := range t.Certificates {
		list.Certificates = slices.DeleteFunc(list.Certificates, func(c trust.RevokedCertificate) bool { return c.Serial == serial })
		list.Certificates = append(list.Certificates, trust.RevokedCertificate{Serial: serial, Until: until})
	}
	slices.SortFunc(list.Certificates, func(a, b trust.RevokedCertificate) int { return cmp.Compare(a.Serial, b.Serial) })
}

// Reinstate removes the revocation of a target from a list that Next made. Certificates that the
// identity received before the revocation stay revoked. If the target is not revoked, or is only
// suspended, Reinstate returns an error.
func Reinstate(list *trust.Revocations, t Target) error {
	if !t.ID.IsZero() {
		i := slices.IndexFunc(list.Entries, func(e trust.Revocation) bool { return e.ID == t.ID })
		if i < 0 {
			return fmt.Errorf("%s is not revoked: florctl revocations lists those that are", t.ID.Short())
		}
		if list.Entries[i].Suspended {
			return fmt.Errorf("%s is suspended: florctl unsuspend", t.ID.Short())
		}
		list.Entries[i].ValidAfter, list.Entries[i].EnrolKeyFingerprints = list.Signed, nil
	} else {
		for _, key := range t.Keys {
			if !removeKey(list, key) {
				return fmt.Errorf("SSH host key %s is not revoked: florctl revocations lists those that are", key)
			}
			list.NameReinstated(trust.Reinstated{Key: key})
		}
	}
	for _, serial := range t.Certificates {
		i := slices.IndexFunc(list.Certificates, func(c trust.RevokedCertificate) bool { return c.Serial == serial })
		if i < 0 {
			return fmt.Errorf("certificate %s is not revoked: florctl revocations lists those that are", serial)
		}
		list.Certificates = slices.Delete(list.Certificates, i, i+1)
		list.NameReinstated(trust.Reinstated{Certificate: serial})
	}
	return nil
}

// Suspend adds a suspension to a list that Next made. A suspended identity receives no certificates
// and reaches no services until Unsuspend is called. If the identity is revoked, Suspend returns an
// error.
func Suspend(list *trust.Revocations, id spiffe.ID) error {
	was := len(list.Entries)
	e := entry(list, id)
	if len(list.Entries) == was && !e.Suspended && e.ValidAfter.IsZero() {
		return fmt.Errorf("%s is revoked: florctl reinstate", id.Short())
	}
	e.Suspended = true
	return nil
}

// Unsuspend removes the suspension of an identity from a list that Next made. Certificates that the
// identity received before are valid again, unless they were revoked. If the identity is not
// suspended, Unsuspend returns an error.
func Unsuspend(list *trust.Revocations, id spiffe.ID) error {
	i := slices.IndexFunc(list.Entries, func(e trust.Revocation) bool { return e.ID == id && e.Suspended })
	if i < 0 {
		return fmt.Errorf("%s is not suspended: florctl revocations lists those that are", id.Short())
	}
	if list.Entries[i].Suspended = false; list.Entries[i].ValidAfter.IsZero() {
		list.Entries = slices.Delete(list.Entries, i, i+1)
	}
	list.NameReinstated(trust.Reinstated{ID: id})
	return nil
}

// removeKey removes an SSH host key from all entries. It reports whether an entry contained the
// key.
func removeKey(list *trust.Revocations, key string) (removed bool) {
	for i, e := range list.Entries {
		if k := slices.Index(e.EnrolKeyFingerprints, key); k >= 0 {
			list.Entries[i].EnrolKeyFingerprints = slices.Delete(e.EnrolKeyFingerprints, k, k+1)
			removed = true
		}
	}
	list.Entries = slices.DeleteFunc(list.Entries, func(e trust.Revocation) bool { return e.ID.IsZero() && len(e.EnrolKeyFingerprints) == 0 })
	return removed
}

// entry returns the entry of an identity. For the zero identity, it returns the entry that contains
// only keys. If the entry does not exist, entry adds it.
func entry(list *trust.Revocations, id spiffe.ID) *trust.Revocation {
	i, found := slices.BinarySearchFunc(list.Entries, id, func(e trust.Revocation, id spiffe.ID) int { return cmp.Compare(e.ID.String(), id.String()) })
	if !found {
		list.Entries = slices.Insert(list.Entries, i, trust.Revocation{ID: id})
	}
	return &list.Entries[i]
}

func union(a, b []string) []string {
	all := slices.Concat(a, b)
	slices.Sort(all)
	return slices.Compact(all)
}

// Fingerprint returns the fingerprint, SHA256:…, of an SSH host key. The key must have the form of
// authorized_keys, which is also its form in the flake.
func Fingerprint(key string) (string, error) {
	parsed, _, _, _, err := ssh.ParseAuthorizedKey([]byte(key))
	if err != nil {
		return "", fmt.Errorf("%q: %w: want it as in sshHostKey, or SHA256:…", key, err)
	}
	return ssh.FingerprintSHA256(parsed), nil
}

// Sign signs a revocation list with one key, after setting the list's format. It returns an error
// if hosts would not accept the list, for example because it is too large.
func Sign(list *trust.Revocations, key signature.SecretKey) (s trust.SignedRevocations, err error) {
	return SignWith(list, func(_, text string) (string, error) {
		sig, err := key.Sign(nil, text)
		return sig.String(), err
	})
}

// namesOutside reports whether a revocation list contains outside callers, whose IDs readers of
// format 1.0 do not understand.
func namesOutside(list *trust.Revocations) bool {
	return slices.ContainsFunc(list.Entries, func(r trust.Revocation) bool { return r.ID.Kind() == spiffe.KindOutside }) ||
		slices.ContainsFunc(list.Reinstated, func(r trust.Reinstated) bool { return r.ID.Kind() == spiffe.KindOutside })
}

// SignWith is like Sign, but calls a function to sign the text of the list. The function returns
// one signature, or those of several keys. Its first argument is a description of the text for
// people.
func SignWith(list *trust.Revocations, sign func(what, text string) (string, error)) (s trust.SignedRevocations, err error) {
	list.Format = document.Format{Major: 1}
	if list.Documents != nil || namesOutside(list) {
		list.Format = trust.NamesDocuments
	}
	b, err := json.Marshal(list)
	if err != nil {
		return s, err
	}
	s.List = string(b)
	if s.Signature, err = sign(fmt.Sprintf("revocation list %d", list.Number), trust.RevocationsText(s.List)); err != nil {
		return s, err
	}
	_, err = s.Open()
	if err != nil && len(b) > trust.MaxRevocations {
		err = errors.Join(err, errors.New("reinstate entries that no longer matter: florctl revocations lists them"))
	}
	return s, err
}

// Supply parses the content of a file that contains a signed revocation list. It does not verify
// the signatures.
func Supply(b []byte) (s trust.SignedRevocations, list *trust.Revocations, err error) {
	if err = strictjson.Decode(b, &s); err == nil {
		list, err = s.Open()
	}
	return s, list, err
}
