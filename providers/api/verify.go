package api

import (
	"crypto/x509"
	"errors"
	"time"

	"github.com/florete/florete"
)

// Peer verifies the chain that the other side of a connection presented, for the part
// that it plays there, and returns whose it is, also where it is revoked. The error is an *Error: transient and
// clock when nothing but the time is wrong, denied and revoked, or denied and untrusted.
func Peer(chain []*x509.Certificate, roots *florete.Roots, part ...x509.ExtKeyUsage) (florete.ID, error) {
	id, err := roots.Verify(chain, time.Now(), part...)
	var late *florete.ValidityError
	var revoked *florete.RevokedError
	switch {
	case errors.As(err, &revoked):
		return id, Errorf(Denied, CodeRevoked, "peer's certificate: %v", err)
	case errors.As(err, &late):
		return florete.ID{}, Errorf(Transient, CodeClock, "%v", err)
	case err != nil:
		return florete.ID{}, Errorf(Denied, CodeUntrusted, "peer's certificate: %v", err)
	}
	return id, nil
}
