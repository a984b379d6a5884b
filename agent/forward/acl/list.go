// Package acl enforces the access rules and limits of the topology on a host. A List answers which
// callers may connect to a service. An Enforcer closes live connections that a new list denies.
// Limits bounds connections, new connections per second, and bytes per second.
package acl

import (
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/unixtime"
)

// List is a compiled allow list, which says which callers may connect to which services. The zero
// List allows nothing.
type List struct {
	allowed map[pair][]document.Allow
}

// pair is a service and one of its callers. An empty port means all ports of the service.
type pair struct {
	target, caller spiffe.ID
	port           string
}

// Compile returns the List of the allow lists of all published services.
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

// Allows reports whether the list allows a caller to connect to the named port of the service
// target. If port is empty, it is enough that the caller may connect to any port of the service. An
// entry of the list can be limited to one certificate, and can expire. It is therefore compared
// with leaf, the certificate that the caller presented, and with the time now.
func (l List) Allows(target spiffe.ID, port string, caller spiffe.ID, leaf *x509.Certificate, now time.Time) bool {
	for _, a := range l.allowed[pair{target, caller, port}] {
		if !a.Ended(now) && (a.Fingerprint == "" || a.Fingerprint == Fingerprint(leaf)) {
			return true
		}
	}
	return false
}

// NextEnd returns the first time after now at which an entry of the list expires, or the permission
// of a caller to log in as an account. It returns the zero time if nothing expires.
func (l List) NextEnd(now time.Time) (next time.Time) {
	ends := func(until unixtime.Time) {
		if until.After(now) && (next.IsZero() || until.Before(next)) {
			next = until.Time
		}
	}
	for _, allowed := range l.allowed {
		for _, a := range allowed {
			ends(a.Until)
			for _, login := range a.Logins {
				ends(login.Until)
			}
		}
	}
	return next
}

// Logins contains the accounts as which callers may log in at services, according to a List at a
// certain time.
type Logins map[login]bool

// login is an account as which a caller may log in at a service.
type login struct {
	target, caller spiffe.ID
	account        string
}

// Logins returns the logins that the list permits at the time now.
func (l List) Logins(now time.Time) Logins {
	all := Logins{}
	for p, allowed := range l.allowed {
		for _, a := range allowed {
			for _, account := range a.Accounts(now) {
				all[login{p.target, p.caller, account}] = true
			}
		}
	}
	return all
}

// Lost compares the logins l with those at a later time. It returns a function that reports whether
// a caller may no longer log in at a service as one of the earlier accounts. It returns nil if no
// caller has lost a login.
func (l Logins) Lost(now Logins) func(target, caller spiffe.ID) bool {
	lost := map[pair]bool{}
	for x := range l {
		if !now[x] {
			lost[pair{target: x.target, caller: x.caller}] = true
		}
	}
	if len(lost) == 0 {
		return nil
	}
	return func(target, caller spiffe.ID) bool { return lost[pair{target: target, caller: caller}] }
}

// Fingerprint returns the SHA-256 digest of a certificate in lower-case hexadecimal.
func Fingerprint(c *x509.Certificate) string {
	sum := sha256.Sum256(c.Raw)
	return hex.EncodeToString(sum[:])
}
