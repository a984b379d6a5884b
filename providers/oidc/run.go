package oidc

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/florete/florete/providers/conns"
)

const (
	reread = time.Second // how soon a new policy is noticed

	// connections of people are no reason for hosts to find no room.
	connections = 1024
	maxHeader   = 32 << 10
)

// Run serves the issuer that the policy in force names, until ctx ends.
func (p *Provider) Run(ctx context.Context, ready func()) error {
	if err := checkListen(p.cfg.Listen); err != nil {
		return err
	}
	for {
		policy := p.cfg.Policy()
		if policy != nil {
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

// waitIssuerChange waits until another issuer is in force than that of a policy.
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

// named is the issuer of a policy, empty where that does not run this kind.
func (p *Policy) named() string {
	if p == nil {
		return ""
	}
	return p.issuer
}

// serve serves one issuer while it is in force.
func (p *Provider) serve(ctx context.Context, policy *Policy, ready func()) error {
	users, err := readUsers(p.cfg.Users)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var owned sync.WaitGroup
	defer owned.Wait()
	defer stop()
	s, err := p.newIssuer(ctx, policy.issuer, policy.cluster, users)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", p.cfg.Listen)
	if err != nil {
		return fmt.Errorf("oidc listen: %w", err)
	}
	web := &http.Server{
		Handler:           s,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxHeader,
		ConnContext:       conns.Context,
		ConnState:         conns.State,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	owned.Go(func() { s.upkeep(ctx) })
	serving, end := context.WithCancel(ctx)
	owned.Go(func() {
		defer end()
		p.waitIssuerChange(ctx, policy)
	})
	s.log.Info("issuer serves", "listen", listener.Addr().String())
	ready()
	// They all come from the forwarder's address, which has no share of its own.
	limit := conns.Limit{Total: connections, Prefix: connections}
	if err := conns.Serve(serving, web, conns.Listen(listener, limit)); err != nil {
		return fmt.Errorf("oidc listen: %w", err)
	}
	return nil
}
