package transport

import (
	"crypto/x509"
	"maps"
	"slices"
	"time"
)

// Anchors are the fingerprints of the roots that vouch for the targets, of this trust domain, of
// connections which new streams may go over, sorted: when one of them is no longer trusted, those streams are cut.
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

// accepts reports whether new streams may go over the connection.
func (c *conn) accepts(now time.Time) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return !c.retired && now.Before(c.until)
}
