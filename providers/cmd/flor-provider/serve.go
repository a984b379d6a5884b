package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/config"
	"github.com/florete/florete/providers/file"
	"github.com/florete/florete/providers/journal"
	"github.com/florete/florete/providers/oidc"
	"github.com/florete/florete/providers/seal"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/store/sqlite"
)

// poll is how often files that come from elsewhere are looked for.
const poll = time.Second

// host is what the kinds of a provider host share.
type host struct {
	*settings.Settings
	instance florete.Instance
	log      *slog.Logger
	store    store.Store
	key      *seal.Key
	policies *server.Policies
	audit    *server.Audit
}

func runCmd(t *target) *cobra.Command {
	return t.withSettings(&cobra.Command{Use: "run", Short: "Serve until told to stop"}, func(cmd *cobra.Command, s *settings.Settings) error {
		return serve(cmd.Context(), &host{Settings: s, instance: t.Instance, log: journal.New(cmd.ErrOrStderr())})
	})
}

// serve runs a provider host, given its settings, until ctx ends.
func serve(ctx context.Context, h *host) error {
	if err := os.MkdirAll(h.State, 0o700); err != nil {
		return err
	}
	db, err := sqlite.Open(storePath(h.Settings), sqlite.Options{})
	if err != nil {
		return err
	}
	defer db.Close()
	h.store, h.audit = db, server.NewAudit(db, h.log)
	if h.key, err = seal.Load(filepath.Join(h.State, "seal.key")); err != nil {
		return err
	}
	if err := h.key.Bind(ctx, db); err != nil {
		return err
	}
	if h.policies, err = server.OpenPolicies(h.Policy, h.log); err != nil {
		return err
	}
	kinds, certificate, err := h.kinds(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := certificate(); err != nil {
		return err
	}
	srv, err := server.New(server.Config{
		Policies: h.policies, Kinds: kinds, Store: db, Key: h.key, Certificate: certificate, Logger: h.log,
		Audit: h.audit, Status: ready,
	})
	if err != nil {
		return err
	}
	provider := h.policies.Current().Provider
	l, err := server.Listen(provider.Listen)
	if err != nil {
		return fmt.Errorf("provider %s: %w", provider.ID.Short(), err)
	}
	h.log.Info("serving", "as", provider.ID, "at", provider.Listen)
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { h.warnOfEnds(ctx) })
	defer watch.Wait()
	defer cancel()
	return srv.Serve(ctx, l)
}

func storePath(s *settings.Settings) string { return filepath.Join(s.State, "state.db") }

// ready tells systemd that the start is over: also when a person has something to
// do first, so that neither boot nor a deployment waits for that.
func ready(status string) {
	// Without systemd there is nobody to tell, and no one else to tell that.
	daemon.SdNotify(false, daemon.SdNotifyReady+"\nSTATUS="+status)
}

// kinds are those that have settings, and where the provider's own SVID is.
func (h *host) kinds(ctx context.Context) ([]server.Kind, func() (*tls.Certificate, error), error) {
	var kinds []server.Kind
	var certificate func() (*tls.Certificate, error)
	if h.Cert != nil {
		if err := h.issuing(ctx); err != nil {
			return nil, nil, err
		}
		issuer := cert.New(cert.Config{Store: h.store, Key: h.key, Authority: h.authority, Policy: h.policies.Current})
		kinds, certificate = append(kinds, issuer), issuer.Certificate
	} else {
		if err := h.delivered(ctx); err != nil {
			return nil, nil, err
		}
		certificate = h.identity
	}
	if h.Config != nil {
		kinds = append(kinds, config.Artifacts(h.Config.Artifacts))
	}
	if h.File != nil {
		kinds = append(kinds, file.Files{Dir: h.File.Dir})
	}
	if h.OIDC != nil {
		kinds = append(kinds, oidc.New(oidc.Config{
			Store: h.store, Key: h.key, Policy: h.policies.Current, Listen: h.OIDC.Listen, Users: h.OIDC.Users, Audit: h.audit, Logger: h.log,
		}))
	}
	return kinds, certificate, nil
}
