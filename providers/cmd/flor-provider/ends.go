package main

import (
	"context"
	"time"

	"github.com/florete/florete"
)

// warnOfEnds logs once a day, until ctx ends, what a person has to sign anew soon: the
// issuing certificate and the roots of the policy.
func (h *host) warnOfEnds(ctx context.Context) {
	tick := time.NewTicker(24 * time.Hour)
	defer tick.Stop()
	for {
		h.logEnds(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (h *host) logEnds(now time.Time) {
	day := func(t time.Time) string { return t.Format(time.DateOnly) }
	p := h.policies.Current()
	if h.Cert != nil {
		if a, err := h.authority(); err == nil && florete.EndsSoon(a.Certificate, now) {
			h.log.Warn("the issuing certificate ends soon", "on", day(a.Certificate.NotAfter), "run", h.sign())
		}
	}
	roots, err := florete.NewRoots(p.TrustDomain, p.Trust.Roots)
	if err != nil {
		return // no such policy comes into force
	}
	for _, c := range roots.Certificates() {
		if florete.EndsSoon(c, now) {
			h.log.Warn("a root certificate ends soon", "on", day(c.NotAfter), "name", c.Subject.CommonName, "run", "florctl ca init")
		}
	}
}
