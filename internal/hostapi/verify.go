package hostapi

import (
	"crypto/x509"
	"errors"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// resumed is when a host that is suspended requests again: it learns soon that it is not.
const resumed = 30 * time.Second

// Revoked is the refusal of what the revocation list has: transient where it is suspended.
func Revoked(place string, err *trust.RevokedError) *Error {
	if err.Suspended {
		return Errorf(CodeRevokedTransient, "%s%v", place, err).After(resumed)
	}
	return Errorf(CodeRevoked, "%s%v", place, err)
}

// Peer verifies the chain that the other side of a connection presented, for the part
// that it plays there, and returns whose it is, also where it is revoked. The error is an *Error: transient and
// clock when nothing but the time is wrong, denied and revoked, or denied and untrusted.
func Peer(chain []*x509.Certificate, roots *trust.Roots, part ...x509.ExtKeyUsage) (spiffe.ID, error) {
	id, err := roots.Verify(chain, time.Now(), part...)
	var late *trust.ValidityError
	var revoked *trust.RevokedError
	switch {
	case errors.As(err, &revoked):
		return id, Revoked("peer's certificate: ", revoked)
	case errors.As(err, &late):
		return spiffe.ID{}, Errorf(CodeClock, "%v", err)
	case err != nil:
		return spiffe.ID{}, Errorf(CodeUntrusted, "peer's certificate: %v", err)
	}
	return id, nil
}
