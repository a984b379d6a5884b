package trust

import (
	"crypto/sha256"
	"crypto/x509"
	"sync"
	"time"
)

// Verified remembers chains whose signatures roots have verified, so that the same certificates
// need not be verified again by the same roots, for as long as all of them are valid. Whether
// they are revoked, and for what they are, is checked each time. Nil remembers nothing.
type Verified struct {
	mu           sync.Mutex
	most         int // in newer, then older are forgotten
	newer, older map[[sha256.Size]byte]validity
}

// validity is when all certificates of a chain, that of the root among them, are valid.
type validity struct{ begin, expiry time.Time }

// NewVerified remembers so many chains at least, and twice as many at most.
func NewVerified(most int) *Verified {
	return &Verified{most: most, newer: map[[sha256.Size]byte]validity{}}
}

// Remembering is the same roots with what they remember, which others may share.
func (r *Roots) Remembering(v *Verified) *Roots {
	if r.verified == v {
		return r
	}
	c := *r
	c.verified = v
	return &c
}

// chainKey identifies a chain and the roots that verify it.
func (r *Roots) chainKey(chain []*x509.Certificate) (key [sha256.Size]byte) {
	h := sha256.New()
	for _, of := range [][]*x509.Certificate{r.certificates, chain} {
		for _, c := range of {
			sum := sha256.Sum256(c.Raw)
			h.Write(sum[:])
		}
		h.Write([]byte{0}) // between the two, where no sum begins
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
