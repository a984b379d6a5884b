package hostdir

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// SVIDSet has the identities of the parts of one host at one moment: the SVIDs that activation
// delivered, and the roots of the manifest, which verify peers. It does not change. The zero SVIDSet has
// no SVIDs.
type SVIDSet struct {
	Trust   *trust.Roots
	Bundles []*trust.Bundle // of foreign trust domains, which Trust is federated with
	svids   map[spiffe.ID]*trust.SVID
}

// SVID is the SVID of id, nil when it has not been delivered.
func (s *SVIDSet) SVID(id spiffe.ID) *trust.SVID { return s.svids[id] }

// LoadSVIDs reads the SVIDs of all cert needs. One that is unchanged is the same pointer
// as in previous; one that cannot be used is left as it was in previous and is
// among the problems, as is one that is revoked, which is left out. The trust has the
// revocation list. previous may be the zero SVIDSet.
func LoadSVIDs(layout Layout, m document.Manifest, previous *SVIDSet) (*SVIDSet, []error) {
	roots, err := trust.NewRoots(m.TrustDomain, m.Trust.Roots)
	if err != nil {
		return previous, []error{fmt.Errorf("manifest of %s: %w", m.Host, err)}
	}
	var problems []error
	var old *trust.Revocations
	if previous.Trust != nil {
		old = previous.Trust.Revocations()
	}
	list, err := trust.ReadRevocations(layout.Revocations(), old)
	if err != nil {
		problems = append(problems, err)
	}
	if old.Newer(list) {
		list = old
	}
	bundles, unread := layout.Foreign(m)
	problems = append(problems, unread...)
	if federated, err := roots.Federated(bundles); err != nil {
		problems = append(problems, fmt.Errorf("manifest of %s: %w", m.Host, err))
	} else {
		roots = federated
	}
	if previous.Trust != nil && roots.Equal(previous.Trust) {
		roots = previous.Trust
	}
	roots = roots.With(list)
	set := &SVIDSet{Trust: roots, Bundles: bundles, svids: map[spiffe.ID]*trust.SVID{}}
	for _, n := range m.Needs {
		if !IsForwarderSVID(n) {
			continue
		}
		id, err := n.CertID()
		if err != nil {
			problems = append(problems, err)
			continue
		}
		old := previous.SVID(id)
		svid, err := loadUsable(roots, layout.Need(n.ID), id)
		var revoked *trust.RevokedError
		switch {
		case errors.Is(err, fs.ErrNotExist) && old == nil:
			continue
		case errors.As(err, &revoked):
			problems = append(problems, fmt.Errorf("need %q: %w", n.ID, err))
			continue
		case err != nil:
			problems = append(problems, fmt.Errorf("need %q: %w", n.ID, err))
			svid = old
		case old != nil && svid.Cert.Leaf.Equal(old.Cert.Leaf):
			svid = old
		}
		if svid != nil {
			set.svids[id] = svid
		}
	}
	return set, problems
}

// IsForwarderSVID reports whether a need is for an SVID of the forwarder: one that belongs
// to another account is not.
func IsForwarderSVID(n document.Need) bool {
	return n.Kind == document.KindCert && n.Deliver.Owner == ""
}

// ForwarderReads reports whether LoadSVIDs reads what a need delivers.
func ForwarderReads(n document.Need) bool {
	return IsForwarderSVID(n) || n.Kind == document.KindFederation
}

// loadUsable reads the SVID of id and refuses one that would be of no use to a peer at any time.
// One that has expired, or by a wrong clock is not valid yet, is accepted: its users check
// the time, and nothing has to be read again when the clock is set.
func loadUsable(roots *trust.Roots, dir string, id spiffe.ID) (*trust.SVID, error) {
	svid, err := LoadSVID(dir, id)
	if err != nil {
		return nil, err
	}
	if err, late := svid.Check(roots, time.Now()), new(trust.ValidityError); err != nil && !errors.As(err, &late) {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return svid, nil
}
