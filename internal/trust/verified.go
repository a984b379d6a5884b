package trust

import (
	"crypto/sha256"
	"crypto/x509"
	"sync"
	"time"
)

// Verified is a cache of certificate chains that a Roots has verified. While a cached chain is
// valid, its signatures are not verified again. Revocation and key usages are still checked each
// time. A nil Verified caches nothing.
type Verified struct {
	mu           sync.Mutex
	most         int // number of entries in newer at which older is discarded
	newer, older map[[sha256.Size]byte]validity
}

// validity is the period in which all certificates of a chain are valid, including the root.
type validity struct{ begin, expiry time.Time }

// NewVerified returns an empty cache for verified certificate chains. The parameter most is the
// number of the newest chains that the cache keeps in any case. It never keeps more than twice that
// number.
func NewVerified(most int) *Verified {
	return &Verified{most: most, newer: map[[sha256.Size]byte]validity{}}
}

// Remembering returns a copy of r that keeps verified chains in the cache v, and does not verify
// their signatures again. Several Roots may share a cache.
func (r *Roots) Remembering(v *Verified) *Roots {
	if r.verified == v {
		return r
	}
	c := *r
	c.verified = v
	return &c
}

// chainKey returns the cache key of a chain. It also depends on the roots that verify the chain.
func (r *Roots) chainKey(chain []*x509.Certificate) (key [sha256.Size]byte) {
	h := sha256.New()
	for _, of := range [][]*x509.Certificate{r.certificates, chain} {
		for _, c := range of {
			sum := sha256.Sum256(c.Raw)
			h.Write(sum[:])
		}
		h.Write([]byte{0}) // separates the two lists
	}
	h.Sum(key[:0])
	return key
}

func (v *Verified) holds(key [sha256.Size]byte, at time.Time) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	is, ok := v.newer[key]
	if !ok {
		is, ok = v.older[key]
	}
	return ok && !at.Before(is.begin) && !at.After(is.expiry)
}

func (v *Verified) add(key [sha256.Size]byte, is validity) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if len(v.newer) >= v.most {
		v.older, v.newer = v.newer, map[[sha256.Size]byte]validity{}
	}
	v.newer[key] = is
}
