// Package identity holds what proves who this host's parts are: its X.509-SVIDs as
// activation delivered them, and the roots of its manifest, which verify its peers'.
package identity

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// Set is the SVIDs of one host at one moment. It does not change. The zero Set
// has none.
type Set struct {
	Trust   *trust.Roots
	Bundles []*trust.Bundle // of foreign trust domains, which Trust is federated with
	svids   map[spiffe.ID]*trust.SVID
}

// SVID is the SVID of id, nil when it has not been delivered.
func (s *Set) SVID(id spiffe.ID) *trust.SVID { return s.svids[id] }

// Load reads the SVIDs of all cert needs. One that is unchanged is the same pointer
// as in previous; one that cannot be used is left as it was in previous and is
// among the problems, as is one that is revoked, which is left out. The trust has the
// revocation list. previous may be the zero Set.
func Load(layout hostdir.Layout, m document.Manifest, previous *Set) (*Set, []error) {
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
	set := &Set{Trust: roots, Bundles: bundles, svids: map[spiffe.ID]*trust.SVID{}}
	for _, n := range m.Needs {
		if !Delivers(n) {
			continue
		}
		id, err := n.CertID()
		if err != nil {
			problems = append(problems, err)
			continue
		}
		old := previous.SVID(id)
		svid, err := load(roots, layout.Need(n.ID), id)
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

// Delivers tells whether a need is for an SVID of the forwarder: one that belongs
// to another account is not.
func Delivers(n document.Need) bool { return n.Kind == document.KindCert && n.Deliver.Owner == "" }

// Reads reports whether Load reads what a need delivers.
func Reads(n document.Need) bool { return Delivers(n) || n.Kind == document.KindFederation }

// load reads the SVID of id and refuses one that would be of no use to a peer at any time.
// One that has expired, or by a wrong clock is not valid yet, is accepted: its users check
// the time, and nothing has to be read again when the clock is set.
func load(roots *trust.Roots, dir string, id spiffe.ID) (*trust.SVID, error) {
	svid, err := hostdir.LoadSVID(dir, id)
	if err != nil {
		return nil, err
	}
	if err, late := svid.Check(roots, time.Now()), new(trust.ValidityError); err != nil && !errors.As(err, &late) {
		return nil, fmt.Errorf("%s: %w", dir, err)
	}
	return svid, nil
}
