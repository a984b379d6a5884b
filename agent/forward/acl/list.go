// Package acl holds who may connect to what: the compiled allow list, and the
// gate that keeps live connections to what the list in force allows.
package acl

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"

	"github.com/florete/florete"
)

// List is a compiled allow list. The zero List allows nothing.
type List struct {
	allowed map[pair][]string // fingerprints, "" for any certificate
}

type pair struct{ target, caller florete.ID }

// Compile makes the list of all published services.
func Compile(published []florete.Published) List {
	l := List{allowed: map[pair][]string{}}
	for _, p := range published {
		for _, a := range p.Allow {
			k := pair{p.ID, a.ID}
			l.allowed[k] = append(l.allowed[k], a.Fingerprint)
		}
	}
	return l
}

// Allows reports whether caller, presenting leaf, may connect to target.
func (l List) Allows(target, caller florete.ID, leaf *x509.Certificate) bool {
	for _, want := range l.allowed[pair{target, caller}] {
		if want == "" || want == Fingerprint(leaf) {
			return true
		}
	}
	return false
}

// Fingerprint is the lower-case hex SHA-256 of a certificate.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}
