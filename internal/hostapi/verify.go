package hostapi

import (
	"crypto/x509"
	"errors"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// resumed is the delay after which a suspended host sends its request again. It is short so that
// the host soon notices the end of the suspension.
const resumed = 30 * time.Second

// Revoked returns the error for a request of a revoked identity. Its message begins with place. The
// error is transient if the identity is only suspended.
func Revoked(place string, err *trust.RevokedError) *Error {
	if err.Suspended {
		return Errorf(CodeRevokedTransient, "%s%v", place, err).After(resumed)
	}
	return Errorf(CodeRevoked, "%s%v", place, err)
}

// RefuseIssue converts a *trust.RevokedError to the error with which a provider refuses to issue a
// credential. If the revocation list accepts credentials of this identity from a later time on, a
// clock may be wrong, and the result is transient. RefuseIssue returns all other errors unchanged.
func RefuseIssue(err error) error {
	var revoked *trust.RevokedError
	switch {
	case !errors.As(err, &revoked):
		return err
	case !revoked.ValidAfter.IsZero() && !revoked.Suspended:
		return Errorf(CodeRevokedTransient, "%v, which is later than it is here: set the clock, if that is wrong", err).After(time.Second)
	}
	return Revoked("", revoked)
}

// Peer verifies the certificate chain that the other side of a connection has presented, and
// returns its SPIFFE ID. The argument part lists extended key usages, all of which the certificates
// must allow. All errors are of type *Error:
//
//   - transient with code clock, if only the time is wrong
//   - denied with code revoked, if the identity is revoked, or transient if it is suspended; Peer
//     then returns the ID too
//   - denied with code untrusted, in all other cases
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
