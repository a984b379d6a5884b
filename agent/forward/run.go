package forward

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"sync/atomic"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/quic-go/quic-go"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/fdstore"
	"github.com/florete/florete/agent/forward/identity"
	"github.com/florete/florete/agent/forward/inbound"
	"github.com/florete/florete/agent/forward/metrics"
	"github.com/florete/florete/agent/forward/outbound"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/agent/watch"
)

// agent is a running forwarder. in and out are nil until the node's identity is
// there; only the loop touches them.
type agent struct {
	Config
	tally    *metrics.Tally
	usage    usage.Table
	proofs   atomic.Pointer[identity.Set] // what new connections prove and believe
	snapshot atomic.Pointer[snapshot]     // in force
	pool     *transport.Pool
	sockets  *fdstore.Store
	watched  bool // systemd wants to hear of every turn
	in       *inbound.Server
	out      *outbound.Server
}

// snapshot is what was on disk, and what could not be used of it. It is told when it
// is in force.
type snapshot struct {
	document   florete.Document
	manifest   florete.Manifest
	identities *identity.Set
	running    bool
	problems   []string
}

func (a *agent) run(ctx context.Context) error {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return fmt.Errorf("watchdog of systemd: %w", err)
	}
	if within > 0 {
		a.watched, a.Poll = true, min(a.Poll, within/3)
	}
	a.sockets = fdstore.Open()
	ln, err := status.Listen(a.Socket)
	if err != nil {
		return err
	}
	a.pool, err = transport.NewPool(a.identities, &a.usage)
	if err != nil {
		ln.Close()
		return err
	}
	a.proofs.Store(&identity.Set{})
	a.snapshot.Store(&snapshot{identities: &identity.Set{}})
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	parallel(
		func() { status.Serve(serving, ln, a.report) },
		func() { a.usage.Shed(serving) },
		func() {
			defer stopServing()
			err = a.loop(ctx)
		})
	return err
}

// loop applies what is on disk, again and again, and ends what it started.
func (a *agent) loop(ctx context.Context) error {
	w := watch.New(a.Log)
	defer w.Close()
	defer a.pool.Close()
	defer a.stop()
	for {
		if err := a.turn(); err != nil {
			return err
		}
		if w.Watch(a.directories()) {
			continue
		}
		if !w.Wait(ctx, a.Poll) {
			a.notify(daemon.SdNotifyStopping)
			return nil
		}
	}
}

// directories are where activation swaps a symlink or makes a directory.
func (a *agent) directories() []string {
	dirs := []string{string(a.Layout), a.Layout.Documents(), a.Layout.Need("")}
	for _, n := range a.snapshot.Load().manifest.Needs {
		if n.Kind == "cert" {
			dirs = append(dirs, a.Layout.Need(n.ID))
		}
	}
	return dirs
}

func (a *agent) stop() {
	if a.in == nil {
		return
	}
	parallel(a.in.Close, a.out.Close)
}

// turn reads the disk and puts what it says in force.
func (a *agent) turn() error {
	old := a.snapshot.Load()
	s := a.read(old)
	if node := s.identities.SVID(s.manifest.Identity.ID); a.in == nil && node != nil {
		if err := a.start(node); err != nil {
			return err
		}
	}
	a.proofs.Store(s.identities)
	if a.in != nil {
		if s.identities.Trust != old.identities.Trust {
			a.pool.Recheck()
		}
		s = s.with(a.in.Apply(s.manifest.Forwarder)...).with(a.out.Apply(s.manifest)...)
		s.running = true
	}
	a.snapshot.Store(s)
	a.tell(old, s)
	return nil
}

// read makes a snapshot. What cannot be read is left as it was in old.
func (a *agent) read(old *snapshot) *snapshot {
	s := &snapshot{document: old.document, manifest: old.manifest, identities: old.identities}
	doc, err := a.Layout.Refresh(old.document)
	if errors.Is(err, fs.ErrNotExist) && old.manifest.Host == "" {
		return s.with(fmt.Errorf("no manifest accepted yet in %s", a.Layout.Documents()))
	}
	if err != nil {
		return s.with(err)
	}
	s.document, s.manifest = doc, doc.Manifest()
	set, errs := identity.Load(a.Layout, s.manifest, old.identities)
	s.identities = set
	return s.with(errs...)
}

// with is s with more problems.
func (s *snapshot) with(errs ...error) *snapshot {
	c := *s
	for _, err := range errs {
		if err != nil {
			c.problems = append(c.problems[:len(c.problems):len(c.problems)], err.Error())
		}
	}
	return &c
}

// start makes both sides, as soon as the node has an identity.
func (a *agent) start(node *identity.SVID) error {
	fresh, err := resetKey(node)
	if err != nil {
		return err
	}
	key := (*quic.StatelessResetKey)(a.sockets.Secret("reset-key", fresh[:]))
	a.in = inbound.New(inbound.Config{Identities: a.identities, Tally: a.tally, Usage: &a.usage, Log: a.Log, Grace: a.Grace, ResetKey: key, Sockets: a.sockets})
	a.out = outbound.New(outbound.Config{Pool: a.pool, Sockets: a.sockets, Tally: a.tally, Log: a.Log, Grace: a.Grace})
	return nil
}

func (a *agent) identities() *identity.Set { return a.proofs.Load() }

// resetKey lets the peers of a killed agent learn from the next one that their connections
// are gone. Where systemd keeps it for that one, a renewal in between changes nothing.
func resetKey(node *identity.SVID) (*quic.StatelessResetKey, error) {
	secret, err := x509.MarshalPKCS8PrivateKey(node.Cert.PrivateKey)
	if err != nil {
		return nil, fmt.Errorf("%s: key: %w", node.ID, err)
	}
	b, err := hkdf.Key(sha256.New, secret, nil, "florete stateless reset", 32)
	if err != nil {
		return nil, err
	}
	return (*quic.StatelessResetKey)(b), nil
}
