package oidc

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/florete/florete/providers/conns"
)

const (
	grace  = 5 * time.Second // for requests under way when serving ends
	reread = time.Second     // how soon a new policy is noticed

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
		named := p.named()
		if named != "" {
			if err := p.serve(ctx, named, ready); err != nil {
				return err
			}
		} else {
			ready()
		}
		if p.changed(ctx, named); ctx.Err() != nil {
			return nil
		}
	}
}

// named is the issuer in force, empty when the policy does not run this kind.
func (p *Provider) named() string {
	issuer, _ := issuerOf(p.cfg.Policy())
	return issuer
}

// changed waits until another issuer is in force.
func (p *Provider) changed(ctx context.Context, issuer string) {
	tick := time.NewTicker(reread)
	defer tick.Stop()
	for p.named() == issuer {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// serve serves one issuer while it is in force.
func (p *Provider) serve(ctx context.Context, issuer string, ready func()) error {
	users, err := readUsers(p.cfg.Users)
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(ctx)
	var owned sync.WaitGroup
	defer owned.Wait()
	defer stop()
	s, err := p.newIssuer(ctx, issuer, users)
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
	owned.Go(func() {
		p.changed(ctx, issuer)
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if web.Shutdown(end) != nil {
			web.Close()
		}
	})
	s.log.Info("issuer serves", "listen", listener.Addr().String())
	ready()
	// They all come from the forwarder's address, which has no share of its own.
	limit := conns.Limit{Total: connections, Prefix: connections}
	if err := web.Serve(conns.Listen(listener, limit)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("oidc listen: %w", err)
	}
	return nil
}
