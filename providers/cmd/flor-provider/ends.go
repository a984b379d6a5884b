package main

import (
	"context"
	"time"

	"github.com/florete/florete"
)

// warnOfEnds logs once a day, until ctx ends, what a person has to sign anew soon: the
// issuing certificate and the roots of the policy.
func (p *process) warnOfEnds(ctx context.Context) {
	tick := time.NewTicker(24 * time.Hour)
	defer tick.Stop()
	for {
		p.logEnds(time.Now())
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (p *process) logEnds(now time.Time) {
	day := func(t time.Time) string { return t.Format(time.DateOnly) }
	policy := p.policies.Current()
	if p.Cert != nil {
		if a, err := p.authority(); err == nil && florete.EndsSoon(a.Certificate, now) {
			p.log.Warn("the issuing certificate ends soon", "on", day(a.Certificate.NotAfter), "run", p.sign())
		}
	}
	roots, err := florete.NewRoots(policy.TrustDomain, policy.Trust.Roots)
	if err != nil {
		return // no such policy comes into force
	}
	for _, c := range roots.Certificates() {
		if florete.EndsSoon(c, now) {
			p.log.Warn("a root certificate ends soon", "on", day(c.NotAfter), "name", c.Subject.CommonName, "run", "florctl ca init")
		}
	}
}
