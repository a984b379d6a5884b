package main

import (
	"context"
	"os"
	"time"

	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
)

// warnOfEnds logs the certificates that an operator must sign again, once a day until ctx ends.
// These are the issuing certificate, whose request is ready, the certificates of a shared store,
// and the roots of the policy.
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
	if s, ok := p.Section.(*cert.Settings); ok {
		if a, err := s.Authority(p.dir()); err == nil && trust.IssuerEnds(a.Certificate, now) {
			// The request may have been lost since the process started.
			if err := ca.Request(policy.TrustDomain, cert.IssuingKey(p.dir()), p.csr()); err != nil {
				p.log.Error("no request for the next issuing certificate", "error", err)
			}
			p.log.Warn("the issuing certificate is to be signed anew: half of its life is over", "ends", day(a.Certificate.NotAfter), "run", p.sign())
		}
	}
	if policy.Store != nil {
		for _, name := range []string{"ca.crt", "client.crt"} {
			file := p.state().certificates()(name)
			text, err := os.ReadFile(file)
			if err != nil {
				continue // the store is refused by then, which says so
			}
			all, _ := trust.ParseCertificates(text)
			for _, c := range all {
				if trust.RootEnds(c, now) {
					p.log.Warn("a certificate of the shared store ends soon", "on", day(c.NotAfter), "file", file, "run", "florctl store issue "+policy.Host)
				}
			}
		}
	}
	roots, err := trust.NewRoots(policy.TrustDomain, policy.Trust.Roots)
	if err != nil {
		return // no such policy comes into force
	}
	for _, c := range roots.Certificates() {
		if trust.RootEnds(c, now) {
			p.log.Warn("a root certificate ends soon", "on", day(c.NotAfter), "name", c.Subject.CommonName, "run", "florctl ca init")
		}
	}
}
