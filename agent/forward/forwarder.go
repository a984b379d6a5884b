package forward

import (
	"context"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"sync"
	"sync/atomic"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/agent/forward/inbound"
	"github.com/florete/florete/agent/forward/outbound"
	"github.com/florete/florete/agent/forward/relay"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/watch"
	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
)

// forwarder is a running forwarder. in and out are nil until the node's SVID has been delivered;
// only the loop uses them.
type forwarder struct {
	Config
	metrics    *telemetry.Counters
	usage      usage.Table
	whois      whois.Table
	traces     *telemetry.Tracer               // nil without a collector
	identities atomic.Pointer[hostdir.SVIDSet] // for new connections, with the roots for their peers
	snapshot   atomic.Pointer[snapshot]        // in force
	pool       *transport.Pool
	sockets    *handover.Store
	within     time.Duration // interval in which systemd expects notifications, zero for none
	number     int           // number of this process in the sequence of handovers
	before     *handover.Before
	older      olders
	turn       sync.Mutex // held during reconcile and by readers of the other fields
	draining   bool
	in         *inbound.Server
	out        *outbound.Server
	pings      atomic.Pointer[outbound.Server] // same as out, for other goroutines than the loop
	publishing atomic.Pointer[inbound.Server]  // same as in, likewise
}

// snapshot contains the state read from disk, and the problems found. The problems are reported
// when the snapshot is in force.
type snapshot struct {
	document   document.Document
	manifest   document.Manifest
	identities *hostdir.SVIDSet
	running    bool
	problems   []string
}

func (f *forwarder) run(ctx context.Context) error {
	var err error
	if f.Starter == nil {
		f.sockets = handover.OpenStore()
		if f.within, err = daemon.SdWatchdogEnabled(false); err != nil {
			return fmt.Errorf("watchdog of systemd: %w", err)
		}
	} else if err = f.inherit(); err != nil {
		return err
	}
	if f.within > 0 {
		f.Poll = min(f.Poll, f.within/3)
	}
	f.traces, err = telemetry.NewTracer(f.Traces, f.OneTraceIn, func() string { return f.snapshot.Load().manifest.Host }, f.Log)
	if err != nil {
		return err
	}
	own, err := f.listen()
	if err != nil {
		return err
	}
	f.pool, err = transport.NewPool(f.identities.Load, &f.usage)
	if err != nil {
		own.close()
		return err
	}
	f.identities.Store(&hostdir.SVIDSet{})
	f.snapshot.Store(&snapshot{identities: &hostdir.SVIDSet{}})
	if f.before != nil {
		if err := f.takeOver(); err != nil {
			own.close()
			f.pool.Close()
			return err
		}
	}
	own.unlink(true)
	serving, stopServing := context.WithCancel(context.WithoutCancel(ctx))
	defer stopServing()
	public, unpublish := context.WithCancel(serving)
	defer unpublish()
	parallel(
		func() { f.serve(public, own) },
		func() { f.traces.Run(serving) },
		func() { f.usage.Shed(serving) },
		func() {
			defer stopServing()
			err = f.loop(ctx, own, unpublish)
		})
	return err
}

// loop applies the state on disk until ctx ends or another process takes over. It then drains the
// remaining connections. It ends everything that it started.
func (f *forwarder) loop(ctx context.Context, own sockets, unpublish func()) error {
	w := watch.New(f.Log)
	defer w.Close()
	defer f.pool.Close()
	defer f.stop()
	alone, end := context.WithCancel(ctx)
	defer end()
	next := make(chan *handover.Next, 1)
	go func() {
		defer end()
		next <- f.successor(alone, own)
	}()
	err := f.follow(alone, w)
	end()
	if n := <-next; n != nil && err == nil {
		defer n.Close()
		unpublish()
		return f.drain(ctx, n, w)
	}
	f.notify(daemon.SdNotifyStopping)
	return err
}

// follow applies the state on disk until ctx ends.
func (f *forwarder) follow(ctx context.Context, w *watch.Watcher) error {
	for {
		if err := f.reconcile(); err != nil {
			return err
		}
		if w.Watch(f.directories()) {
			continue
		}
		if !w.Wait(ctx, f.Poll) {
			return nil
		}
	}
}

// directories returns the directories in which activation replaces symlinks or creates directories.
func (f *forwarder) directories() []string {
	dirs := []string{string(f.Layout), f.Layout.Documents(), f.Layout.Need("")}
	for _, n := range f.snapshot.Load().manifest.Needs {
		if hostdir.ForwarderReads(n) {
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

// reconcile reads the state on disk and puts it in force.
func (f *forwarder) reconcile() error {
	f.turn.Lock()
	defer f.turn.Unlock()
	old := f.snapshot.Load()
	s := f.read(old)
	if node := s.identities.SVID(s.manifest.Identity.ID); f.in == nil && node != nil && !f.draining {
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
	if f.Starter != nil {
		f.Starter.Serving()
		f.Starter = nil
	}
	return nil
}

// read makes a snapshot. Anything that cannot be read is kept as it was in old.
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
	set, errs := hostdir.LoadSVIDs(f.Layout, s.manifest, old.identities)
	s.identities = set
	return s.with(errs...)
}

// with returns s with additional problems.
func (s *snapshot) with(errs ...error) *snapshot {
	c := *s
	for _, err := range errs {
		if err != nil {
			c.problems = append(c.problems[:len(c.problems):len(c.problems)], err.Error())
		}
	}
	return &c
}

// start creates both sides once the node has an identity.
func (f *forwarder) start(node *trust.SVID) error {
	fresh, err := resetKey(node)
	if err != nil {
		return err
	}
	key := (*quic.StatelessResetKey)(f.sockets.Secret("reset-key", fresh[:]))
	f.in = inbound.New(inbound.Config{Node: node.ID, Relay: relay.New(f.pool), Identities: f.identities.Load, Metrics: f.metrics, Usage: &f.usage, Whois: &f.whois, Log: f.Log, Traces: f.traces, Access: telemetry.NewAccessLog(f.Access, f.Log), Grace: f.Grace, ResetKey: key, Sockets: f.sockets})
	f.out = outbound.New(outbound.Config{Pool: f.pool, Sockets: f.sockets, Metrics: f.metrics, Log: f.Log, Traces: f.traces, Grace: f.Grace})
	f.pings.Store(f.out)
	f.publishing.Store(f.in)
	return nil
}

// resetKey returns the stateless reset key. A forwarder that is restarted after a crash uses it to
// tell peers that their connections are gone. systemd keeps the key, so a renewal of the SVID in
// between does not change it.
func resetKey(node *trust.SVID) (*quic.StatelessResetKey, error) {
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
