// Package identity holds what proves who this host's parts are: its X.509-SVIDs as
// activation delivered them, and the roots of its manifest, which verify its peers'.
package identity

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/florete/florete"
)

// Set is the SVIDs of one host at one moment. It does not change. The zero Set
// has none.
type Set struct {
	Trust *florete.Roots
	svids map[florete.ID]*SVID
}

// SVID is the SVID of id, nil when it has not been delivered.
func (s *Set) SVID(id florete.ID) *SVID { return s.svids[id] }

// Load reads the SVIDs of all cert needs. One that is unchanged is the same *SVID
// as in previous; one that cannot be used is left as it was in previous and is
// among the problems. previous may be the zero Set.
func Load(layout florete.Layout, m florete.Manifest, previous *Set) (*Set, []error) {
	trust, err := florete.NewRoots(m.TrustDomain, m.Trust.Roots)
	if err != nil {
		return previous, []error{fmt.Errorf("manifest of %s: %w", m.Host, err)}
	}
	if previous.Trust != nil && trust.Equal(previous.Trust) {
		trust = previous.Trust
	}
	set := &Set{Trust: trust, svids: map[florete.ID]*SVID{}}
	var problems []error
	for _, n := range m.Needs {
		if !Delivers(n) {
			continue
		}
		id, err := CertID(n)
		if err != nil {
			problems = append(problems, err)
			continue
		}
		old := previous.SVID(id)
		svid, err := load(trust, layout.Need(n.ID), id)
		switch {
		case errors.Is(err, fs.ErrNotExist) && old == nil:
			continue
		case err != nil:
			problems = append(problems, fmt.Errorf("need %q: %w", n.ID, err))
			svid = old
		case svid.equal(old):
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
func Delivers(n florete.Need) bool { return n.Kind == "cert" && n.Deliver.Owner == "" }

// CertID is the identity that a need of kind cert is for.
func CertID(n florete.Need) (florete.ID, error) {
	var request struct {
		ID florete.ID `json:"id"`
	}
	if err := json.Unmarshal(n.Request, &request); err != nil {
		return florete.ID{}, fmt.Errorf("need %q: request: %w", n.ID, err)
	}
	if request.ID.IsZero() {
		return florete.ID{}, fmt.Errorf("need %q: request has no id", n.ID)
	}
	return request.ID, nil
}

// check refuses what would be of no use to a peer at any time. An SVID that has
// expired, or by a wrong clock is not valid yet, is accepted: it is said as such
// where it is used, and nothing is to be read again when the clock is set.
func check(trust *florete.Roots, cert tls.Certificate, id florete.ID) error {
	chain := []*x509.Certificate{cert.Leaf}
	for _, der := range cert.Certificate[1:] {
		c, err := x509.ParseCertificate(der)
		if err != nil {
			return fmt.Errorf("intermediate certificate: %w", err)
		}
		chain = append(chain, c)
	}
	found, err := trust.Verify(chain, time.Now(), x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth)
	if late := new(florete.ValidityError); err != nil && !errors.As(err, &late) {
		return err
	}
	if found != id {
		return fmt.Errorf("certificate is for %s, want %s", found, id)
	}
	return nil
}
