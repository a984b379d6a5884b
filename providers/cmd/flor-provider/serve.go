package main

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"
	"k8s.io/klog/v2"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/tlog"
)

// poll is the interval at which a process looks for files that other programs write.
const poll = time.Second

// process is one process of a provider host. It answers requests for one kind of need. It has a
// state and an identity of its own.
type process struct {
	*settings.Settings
	kind     string
	instance hostdir.Instance
	log      *slog.Logger
	store    store.Store
	shared   bool // the state is in a shared store, by the policy at the start
	key      *sealedstore.Key
	ring     sealedstore.RingKeys // ring that contains the key, if the store is shared
	policies *server.Policies
	audit    *server.Audit
	tlog     *tlog.Log
}

func runCmd(t *target) *cobra.Command {
	return &cobra.Command{
		Use: "run KIND", Short: "Run the provider of one kind of need",
		Long: `Run the provider of one kind of need, which answers requests of hosts. systemd runs this command
on provider hosts, once for each kind. The policy of this host says which requests the provider
grants. The command runs until it is stopped. KIND is
` + strings.Join(kinds.Names(), ", ") + `,
or a kind that the topology declares.`,
		Args: cobra.ExactArgs(1), ValidArgs: kinds.Names(),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := t.load(args[0])
			if err != nil {
				return err
			}
			server.TuneRuntime()
			for {
				err := (&process{Settings: s, kind: args[0], instance: t.Instance, log: journal.New(cmd.ErrOrStderr())}).serve(cmd.Context())
				if !errors.Is(err, errMoved) { // after a move, the process restarts at once
					return err
				}
			}
		},
	}
}

// serve runs the process until ctx ends, or until a part of the process fails.
func (p *process) serve(ctx context.Context) error {
	if err := os.MkdirAll(p.dir(), 0o700); err != nil {
		return err
	}
	if err := p.wait(ctx, "the policy", p.openPolicies); err != nil {
		return nil
	}
	if err := p.request(); err != nil { // an operator can sign it while the process waits for the store
		return err
	}
	db, err := p.openStore(ctx)
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	defer db.Close()
	p.store, p.audit, p.tlog = db, server.NewAudit(db, p.log), p.auditLog(db)
	err = p.openKey(ctx)
	var srv *server.Server
	if err == nil {
		srv, err = p.prepare(ctx)
	}
	if ctx.Err() != nil {
		return nil
	}
	if err != nil {
		return err
	}
	if _, err := srv.Certificate(); err != nil {
		return err
	}
	self := p.policies.Self()
	l, err := server.Listen(self.Listen)
	if err != nil {
		return fmt.Errorf("provider %s: %w", self.ID.Short(), err)
	}
	p.log.Info("serving", "as", self.ID, "at", self.Listen)
	ctx, cancel := context.WithCancel(ctx)
	var watch sync.WaitGroup
	watch.Go(func() { p.warnOfEnds(ctx) })
	watch.Go(func() { p.followList(ctx, srv) })
	var again error // reason for a restart of the process
	watch.Go(func() {
		if again = p.keepState(ctx); again != nil {
			cancel()
		}
	})
	err = srv.Serve(ctx, l)
	cancel()
	watch.Wait()
	if err == nil {
		err = again
	}
	return err
}

// auditLog returns the tamper-evident audit log of the rows in the store.
func (p *process) auditLog(db store.Store) *tlog.Log {
	klog.SetSlogLogger(slog.New(quiet{p.log.Handler()}))
	policy := p.policies.Current()
	return tlog.New(tlog.Config{
		Dir: logPath(p.dir()), Name: policy.TrustDomain + "/" + p.kind + "/" + policy.Host, Store: db, Prefix: server.AuditPrefix,
		Kept: p.Retention.Rows, Logger: p.log,
	})
}

// quiet is a log handler that passes on only errors. Tessera logs everything else at level info,
// through klog.
type quiet struct{ slog.Handler }

func (q quiet) Enabled(_ context.Context, l slog.Level) bool { return l >= slog.LevelError }

// dir returns the directory of this process.
func (p *process) dir() string { return p.Dir(p.kind) }

func storePath(dir string) string { return filepath.Join(dir, "state.db") }

func keyPath(dir string) string { return filepath.Join(dir, "seal.key") }

func logPath(dir string) string { return filepath.Join(dir, "log") }

// ready tells systemd that the start is complete. It does so even if an operator must act before
// the process can serve hosts, so that neither the boot nor a deployment waits for the operator.
func ready(status string) {
	// Without systemd, this does nothing.
	daemon.SdNotify(false, daemon.SdNotifyReady+"\nSTATUS="+status)
}

// followList sets the status of the systemd unit while the provider issues nothing because the
// revocation list is too old. The command flor doctor reads the status.
func (p *process) followList(ctx context.Context, srv *server.Server) {
	tick := time.NewTicker(look)
	defer tick.Stop()
	for said := ""; ; {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := ""
		if err := srv.ListBehind(); err != nil {
			now = "waiting for the newest revocation list: " + err.Error()
		}
		if now != said {
			said = now
			ready(cmp.Or(now, "serving"))
		}
	}
}

// prepare waits until the process has a policy and the certificate that it presents to hosts. It
// then returns the server.
func (p *process) prepare(ctx context.Context) (srv *server.Server, err error) {
	if s, ok := p.Section.(*cert.Settings); ok {
		err = p.issuing(ctx, s)
	} else {
		err = p.delivered(ctx)
	}
	if err != nil {
		return nil, err
	}
	err = p.wait(ctx, "a policy that it can serve", func() (err error) {
		if err := p.openPolicies(); err != nil { // opens the newest policies
			return err
		}
		srv, err = p.server()
		return err
	})
	return srv, err
}

// server returns a server for the policies that the process opened last.
func (p *process) server() (*server.Server, error) {
	kind, certificate := p.provider()
	list := distribution.List(p.kind, p.store, p.leftList(), p.log)
	if list == nil {
		p.policies.AlsoRead(p.leftList())
	}
	return server.New(server.Config{
		List: list, Policies: p.policies, Kind: kind, Store: p.store, Key: p.key, Certificate: certificate, Logger: p.log,
		Audit: p.audit, Log: p.tlog, Retention: p.Retention, Ready: func() { ready("serving") },
	})
}

// leftList returns the path of the file with the revocation list. The process of kind config writes
// the file, and the other processes read it.
func (p *process) leftList() string {
	return cmp.Or(p.List, filepath.Join("/run", p.instance.Unit("provider-"+distribution.Name), "revocations.json"))
}

// provider returns the kind of need that the process answers, and a function that returns the
// process's own SVID.
func (p *process) provider() (server.AnyKind, func() (*tls.Certificate, error)) {
	of := server.Process{Instance: p.instance, Dir: p.dir(), Store: p.store, Key: p.key, Policies: p.policies, Audit: p.audit, Log: p.tlog, Logger: p.log}
	if s, ok := p.Section.(*cert.Settings); ok {
		issuer := s.Issuer(of)
		return server.Any(issuer), issuer.Certificate
	}
	return p.Section.Kind(of), p.identity
}
