package cert

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/ca"
)

// selfSVID holds the provider's own SVID, which the provider issues to itself.
type selfSVID struct {
	mu    sync.Mutex
	id    spiffe.ID
	roots []string // roots of the policy under which it was made
	from  time.Time
	svid  *tls.Certificate

	unrecorded []selfIssued // SVIDs that are not recorded yet
}

// selfIssued is an SVID that the provider issued to itself.
type selfIssued struct {
	leaf *x509.Certificate
	id   spiffe.ID
	at   time.Time
}

// Certificate returns the provider's own SVID. It issues a new one if there is none yet, after two
// thirds of the lifetime, if the SVID was revoked, or if the roots in the policy or the issuing
// certificate have changed. It also issues a new one if the clock was set back to a time before the
// SVID is valid. If the policy does not include kind "cert", Certificate returns an error.
func (i *Issuer) Certificate() (*tls.Certificate, error) {
	i.self.mu.Lock()
	defer i.self.mu.Unlock()
	p, now := i.Policy(), time.Now()
	if p == nil {
		return nil, fmt.Errorf("own SVID: the policy in force does not run kind %q", Name)
	}
	if c := i.self.svid; c != nil && i.self.id == p.Provider[Name].ID && slices.Equal(i.self.roots, p.Trust.Roots) && i.selfIssuedNow(p, c) && i.revoked().CheckChain([]*x509.Certificate{c.Leaf}, i.self.id) == nil {
		age := now.Sub(i.self.from)
		if age >= 0 && age < c.Leaf.NotAfter.Sub(i.self.from)*2/3 {
			return c, nil
		}
	}
	key, err := ca.NewKey()
	if err != nil {
		return nil, err
	}
	chain, err := i.issue(p, ca.SVID{ID: p.Provider[Name].ID, Node: p.Host, Key: key.Public()}, now)
	if err != nil {
		return nil, fmt.Errorf("own SVID: %w", err)
	}
	c := &tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, x := range chain {
		c.Certificate = append(c.Certificate, x.Raw)
	}
	i.self.id, i.self.roots, i.self.from, i.self.svid = p.Provider[Name].ID, p.Trust.Roots, now, c
	i.self.unrecorded = append(i.self.unrecorded, selfIssued{chain[0], i.self.id, now})
	return c, nil
}

// selfIssuedNow reports whether the provider's own SVID was issued with the issuing certificate in
// force. If no issuing certificate can be used, it returns true, so that the SVID stays in use.
func (i *Issuer) selfIssuedNow(p *Policy, c *tls.Certificate) bool {
	a, err := i.authority(p)
	return err != nil || bytes.Equal(c.Certificate[len(c.Certificate)-1], a.Certificate.Raw)
}
