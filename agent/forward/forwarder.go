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

// forwarder is a running one. in and out are nil until the node's identity is
// there; only the loop touches them.
type forwarder struct {
	Config
	metrics    *metrics.Counters
	usage      usage.Table
	identities atomic.Pointer[identity.Set] // of new connections, and the roots for their peers
	snapshot   atomic.Pointer[snapshot]     // in force
	pool       *transport.Pool
	sockets    *fdstore.Store
	watched    bool // systemd expects a notification of every pass
	in         *inbound.Server
	out        *outbound.Server
}

// snapshot is what was on disk, and what could not be used of it. It is reported when it
// is in force.
type snapshot struct {
	document   florete.Document
	manifest   florete.Manifest
	identities *identity.Set
	running    bool
	problems   []string
}

func (f *forwarder) run(ctx context.Context) error {
	within, err := daemon.SdWatchdogEnabled(false)
	if err != nil {
		return fmt.Errorf("watchdog of systemd: %w", err)
	}
	if within > 0 {
		f.watched, f.Poll = true, min(f.Poll, within/3)
	}
	f.sockets = fdstore.Open()
	ln, err := status.Listen(f.Socket)
	if err != nil {
		return err
	}
	f.pool, err = transport.NewPool(f.identities.Load, &f.usage)
	if err != nil {
		ln.Close()
		return err
	}
	f.identities.Store(&identity.Set{})
	f.snapshot.Store(&snapshot{identities: &identity.Set{}})
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	parallel(
		func() { status.Serve(serving, ln, f.status) },
		func() { f.usage.Shed(serving) },
		func() {
			defer stopServing()
			err = f.loop(ctx)
		})
	return err
}

// loop applies what is on disk, again and again, and ends what it started.
func (f *forwarder) loop(ctx context.Context) error {
	w := watch.New(f.Log)
	defer w.Close()
	defer f.pool.Close()
	defer f.stop()
	for {
		if err := f.reconcile(); err != nil {
			return err
		}
		if w.Watch(f.directories()) {
			continue
		}
		if !w.Wait(ctx, f.Poll) {
			f.notify(daemon.SdNotifyStopping)
			return nil
		}
	}
}

// directories are where activation swaps a symlink or makes a directory.
func (f *forwarder) directories() []string {
	dirs := []string{string(f.Layout), f.Layout.Documents(), f.Layout.Need("")}
	for _, n := range f.snapshot.Load().manifest.Needs {
		if n.Kind == "cert" {
			dirs = append(dirs, f.Layout.Need(n.ID))
		}
	}
	return dirs
}

func (f *forwarder) stop() {
	if f.in == nil {
		return
	}
	parallel(f.in.Close, f.out.Close)
}

// reconcile reads the disk and puts what is there in force.
func (f *forwarder) reconcile() error {
	old := f.snapshot.Load()
	s := f.read(old)
	if node := s.identities.SVID(s.manifest.Identity.ID); f.in == nil && node != nil {
		if err := f.start(node); err != nil {
			return err
		}
	}
	f.identities.Store(s.identities)
	if f.in != nil {
		if s.identities.Trust != old.identities.Trust {
			f.pool.Recheck()
		}
		s = s.with(f.in.Apply(s.manifest.Forwarder)...).with(f.out.Apply(s.manifest)...)
		s.running = true
	}
	f.snapshot.Store(s)
	f.report(old, s)
	return nil
}

// read makes a snapshot. What cannot be read is left as it was in old.
func (f *forwarder) read(old *snapshot) *snapshot {
	s := &snapshot{document: old.document, manifest: old.manifest, identities: old.identities}
	doc, err := f.Layout.Refresh(old.document)
	if errors.Is(err, fs.ErrNotExist) && old.manifest.Host == "" {
		return s.with(fmt.Errorf("no manifest accepted yet in %s", f.Layout.Documents()))
	}
	if err != nil {
		return s.with(err)
	}
	s.document, s.manifest = doc, doc.Manifest()
	set, errs := identity.Load(f.Layout, s.manifest, old.identities)
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
func (f *forwarder) start(node *florete.SVID) error {
	fresh, err := resetKey(node)
	if err != nil {
		return err
	}
	key := (*quic.StatelessResetKey)(f.sockets.Secret("reset-key", fresh[:]))
	f.in = inbound.New(inbound.Config{Identities: f.identities.Load, Metrics: f.metrics, Usage: &f.usage, Log: f.Log, Grace: f.Grace, ResetKey: key, Sockets: f.sockets})
	f.out = outbound.New(outbound.Config{Pool: f.pool, Sockets: f.sockets, Metrics: f.metrics, Log: f.Log, Grace: f.Grace})
	return nil
}

// resetKey lets the peers of a killed forwarder learn from the next one that their connections
// are gone. Where systemd keeps it for that one, a renewal in between changes nothing.
func resetKey(node *florete.SVID) (*quic.StatelessResetKey, error) {
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
