// Package acl enforces the access rules of the topology: the compiled allow list, the gate that
// closes live connections which a new list denies, and limits of connections, new connections and
// bytes.
package acl

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// List is a compiled allow list. The zero List allows nothing.
type List struct {
	allowed map[pair][]document.Allow
}

// pair is a caller of a service. An empty port stands for all ports.
type pair struct {
	target, caller spiffe.ID
	port           string
}

// Compile compiles the allow lists of all published services.
func Compile(published []document.Published) List {
	l := List{allowed: map[pair][]document.Allow{}}
	for _, p := range published {
		for _, a := range p.Allow {
			k := pair{p.ID, a.ID, ""}
			l.allowed[k] = append(l.allowed[k], a)
			if p.Port != "" {
				k.port = p.Port
				l.allowed[k] = append(l.allowed[k], a)
			}
		}
	}
	return l
}

// Allows reports whether caller, presenting leaf, may connect to target now: to the named port, or
// to any port if port is empty.
func (l List) Allows(target spiffe.ID, port string, caller spiffe.ID, leaf *x509.Certificate, now time.Time) bool {
	for _, a := range l.allowed[pair{target, caller, port}] {
		ended := !a.Until.IsZero() && !now.Before(a.Until.Time)
		if !ended && (a.Fingerprint == "" || a.Fingerprint == Fingerprint(leaf)) {
			return true
		}
	}
	return false
}

// NextEnd returns the next time at which a current permission ends, zero if none does.
func (l List) NextEnd(now time.Time) (next time.Time) {
	for _, allowed := range l.allowed {
		for _, a := range allowed {
			if a.Until.After(now) && (next.IsZero() || a.Until.Before(next)) {
				next = a.Until.Time
			}
		}
	}
	return next
}

// Fingerprint returns the lower-case hex SHA-256 of a certificate.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}
