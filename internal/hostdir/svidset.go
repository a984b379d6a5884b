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

// SVIDSet contains the SVIDs that were delivered to a host, and the root certificates by which the
// host verifies its peers. An SVIDSet is immutable. The zero SVIDSet contains no SVIDs.
type SVIDSet struct {
	Trust   *trust.Roots
	Bundles []*trust.Bundle // bundles of the foreign trust domains with which Trust is federated
	svids   map[spiffe.ID]*trust.SVID
}

// SVID returns the SVID with the given SPIFFE ID, or nil if the set contains none.
func (s *SVIDSet) SVID(id spiffe.ID) *trust.SVID { return s.svids[id] }

// LoadSVIDs reads the host's revocation list and the SVIDs that were delivered for its needs of
// kind cert. The caller passes the previous result, or the zero SVIDSet. An SVID that did not
// change keeps its pointer. An SVID that cannot be used is replaced by the previous one, and a
// revoked SVID is left out. In both cases, LoadSVIDs returns a problem.
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

// IsForwarderSVID reports whether a need delivers an SVID to the forwarder, and not to another
// account.
func IsForwarderSVID(n document.Need) bool {
	return n.Kind == document.KindCert && n.Deliver.Owner == ""
}

// ForwarderReads reports whether LoadSVIDs reads the delivered files of a need, so that the
// forwarder must be able to read them.
func ForwarderReads(n document.Need) bool {
	return IsForwarderSVID(n) || n.Kind == document.KindFederation
}

// loadUsable reads the SVID of the identity id, and returns an error if peers would never accept
// this SVID. It accepts an SVID that has expired, or is not yet valid because the host's clock is
// wrong. The users of the SVID check the time, so nothing has to be read again when the clock is
// set.
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
