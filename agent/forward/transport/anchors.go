package transport

import (
	"crypto/x509"
	"maps"
	"slices"
	"time"
)

const (
	// renewPeriod is the interval at which the pool looks for superseded connections, whose target
	// has an SVID below a root that is being replaced.
	renewPeriod = 10 * time.Second
	// supersededFor is the time for which a superseded connection accepts new streams. Within this
	// time, the target usually renews its SVID. If it has not, the next connection is given the
	// same time.
	supersededFor = time.Minute
)

// Anchors returns the fingerprints, sorted, of the trust roots that this host must keep for its
// open connections. If such a root were no longer trusted, connections that accept new streams
// would be closed. Only roots of this host's trust domain are considered.
func (p *Pool) Anchors() []string {
	trust := p.identities().Trust
	if trust == nil {
		return nil
	}
	p.mu.Lock()
	issuers := map[string]*x509.Certificate{}
	for c := range p.conns {
		if c.accepts(time.Now()) && c.peer.ID.TrustDomain() == trust.TrustDomain() {
			for _, x := range c.issuers() {
				issuers[string(x.Raw)] = x
			}
		}
	}
	p.mu.Unlock()
	found := map[string]bool{}
	for _, x := range issuers {
		found[trust.Anchor([]*x509.Certificate{x})] = true
	}
	return slices.Sorted(maps.Keys(found))
}

// retireSuperseded retires the superseded connections, so that the old root can be removed without
// cutting streams. A connection is superseded if the target's SVID leads to a root that is being
// replaced, and the caller has an SVID below the newer root. The next connection probably leads to
// the newer root too.
func (p *Pool) retireSuperseded(now time.Time) {
	set := p.identities()
	trust := set.Trust
	if trust == nil || len(trust.Certificates()) < 2 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	known := map[string]bool{}
	superseded := func(issuer *x509.Certificate) bool {
		is, ok := known[string(issuer.Raw)]
		if !ok {
			is = trust.Superseded([]*x509.Certificate{issuer})
			known[string(issuer.Raw)] = is
		}
		return is
	}
	for c := range p.conns {
		svid := set.SVID(c.route.Caller)
		if now.Sub(c.made) < supersededFor || !c.accepts(now) || svid == nil || c.peer.ID.TrustDomain() != trust.TrustDomain() {
			continue
		}
		if !superseded(svid.Chain[len(svid.Chain)-1]) && slices.ContainsFunc(c.issuers(), superseded) {
			if c.endpoint.current == c {
				c.endpoint.current = nil
			}
			c.retire()
		}
	}
}

// accepts reports whether the connection accepts new streams.
func (c *conn) accepts(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.retired && now.Before(c.until)
}
