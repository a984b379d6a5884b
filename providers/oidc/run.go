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
)

// grace is how long requests under way may take when Run ends.
const grace = 5 * time.Second

// Run serves the issuer of the policy in force until ctx ends.
func (p *Provider) Run(ctx context.Context) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := p.newIssuer(ctx, p.cfg.Policy())
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
		IdleTimeout:       2 * time.Minute,
		ErrorLog:          slog.NewLogLogger(s.log.Handler(), slog.LevelWarn),
	}
	var owned sync.WaitGroup
	defer owned.Wait()
	defer stop()
	owned.Go(func() { s.upkeep(ctx) })
	owned.Go(func() {
		<-ctx.Done()
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
		defer cancel()
		if web.Shutdown(end) != nil {
			web.Close()
		}
	})
	s.log.Info("issuer serves", "listen", listener.Addr().String())
	if err := web.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("oidc listen: %w", err)
	}
	return nil
}
