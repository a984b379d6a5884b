package oidc

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/florete/florete/providers/announced"
)

const reread = time.Second // how soon a new policy is noticed

// Run serves the sign-in pages of the policy's issuer until ctx ends. If the policy names an
// external issuer, Run serves no pages, but removes clients at that issuer that the policy no
// longer contains. Run calls ready when requests of hosts can be answered.
func (p *Provider) Run(ctx context.Context, ready func()) error {
	for {
		policy := p.cfg.Policy()
		if policy != nil && policy.registration != "" {
			ready()
			p.endWhile(ctx, policy)
		} else if policy != nil {
			if err := p.serve(ctx, policy, ready); err != nil {
				return err
			}
		} else {
			ready()
		}
		if p.waitIssuerChange(ctx, policy); ctx.Err() != nil {
			return nil
		}
	}
}

// endWhile ends former clients at an external issuer as long as the policy that names the issuer is
// in force.
func (p *Provider) endWhile(ctx context.Context, policy *Policy) {
	ctx, stop := context.WithCancel(ctx)
	var owned sync.WaitGroup
	owned.Go(func() { p.endExternal(ctx) })
	p.waitIssuerChange(ctx, policy)
	stop()
	owned.Wait()
}

// waitIssuerChange waits until the policy in force has another issuer or other connectors than the
// policy given by from.
func (p *Provider) waitIssuerChange(ctx context.Context, from *Policy) {
	tick := time.NewTicker(reread)
	defer tick.Stop()
	for p.cfg.Policy().named() == from.named() {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// named returns the part of a policy on which the pages depend, or "" if the policy does not
// include this kind.
func (p *Policy) named() string {
	if p == nil {
		return ""
	}
	return p.made
}

// serve serves one issuer as long as the policy that names it is in force.
func (p *Provider) serve(ctx context.Context, policy *Policy, ready func()) error {
	if err := p.pages(nil, nil).Check(); err != nil {
		return err
	}
	users, err := readUsers(p.cfg.Users)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var owned sync.WaitGroup
	defer owned.Wait()
	defer stop()
	s, err := p.newIssuer(ctx, policy, users)
	if err != nil {
		return err
	}
	owned.Go(func() { s.upkeep(ctx) })
	serving, end := context.WithCancel(ctx)
	owned.Go(func() {
		defer end()
		p.waitIssuerChange(ctx, policy)
	})
	return announced.ServePages(serving, p.pages(s, ready))
}

// pages returns the configuration for serving the pages.
func (p *Provider) pages(handler http.Handler, ready func()) announced.Pages {
	return announced.Pages{
		Name: Name, Listen: p.cfg.Listen, Secret: "passwords would cross the network in clear", Handler: handler, Logger: p.log,
		Ready: func() {
			p.log.Info("issuer serves", "listen", p.cfg.Listen)
			ready()
		},
	}
}
