package cert

import (
	"crypto/tls"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/ca"
)

// own is the provider's own SVID, which it issues to itself.
type own struct {
	mu    sync.Mutex
	id    florete.ID
	roots []string // of the policy it was made under
	from  time.Time
	svid  *tls.Certificate
}

// Certificate is the provider's own SVID: made at the first call, and anew when two
// thirds of its life have passed, the clock was set back before it, or the policy has
// other roots, which are all that hosts believe by then.
func (i *Issuer) Certificate() (*tls.Certificate, error) {
	i.own.mu.Lock()
	defer i.own.mu.Unlock()
	p, now := i.Policy(), time.Now()
	if c := i.own.svid; c != nil && i.own.id == p.Provider[Name].ID && slices.Equal(i.own.roots, p.Trust.Roots) {
		age := now.Sub(i.own.from)
		if age >= 0 && age < c.Leaf.NotAfter.Sub(i.own.from)*2/3 {
			return c, nil
		}
	}
	key, err := ca.NewKey()
	if err != nil {
		return nil, err
	}
	chain, err := i.issue(p, p.Provider[Name].ID, key.Public(), now)
	if err != nil {
		return nil, fmt.Errorf("own SVID: %w", err)
	}
	c := &tls.Certificate{PrivateKey: key, Leaf: chain[0]}
	for _, x := range chain {
		c.Certificate = append(c.Certificate, x.Raw)
	}
	i.own.id, i.own.roots, i.own.from, i.own.svid = p.Provider[Name].ID, p.Trust.Roots, now, c
	return c, nil
}
