package server

import (
	"net/http"

	"github.com/florete/florete/internal/hostapi"
)

// Lister is a Kind that signs a certificate revocation list, at GET hostapi.PathCRL(Name()).
type Lister interface {
	// NewestCRL is the newest one, without its text where that has the number that the caller
	// has.
	NewestCRL(has string) (hostapi.CRL, error)
}

// crl answers a node that keeps the CRL for software on it. It leaves no row.
func (s *Server) crl(w http.ResponseWriter, r *http.Request, k Lister) {
	a := s.Request(r)
	a.Reply(w, r, a.Identify(r, false), func() (any, Change, error) {
		c, err := k.NewestCRL(r.URL.Query().Get("has"))
		return c, Change{Unrecorded: true}, err
	})
}
