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
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/agent/whois"
	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
)

// forwarder is a running forwarder. The fields in and out are nil until the node's SVID has been
// delivered. Only the loop uses them.
type forwarder struct {
	Config
	metrics    *telemetry.Counters
	usage      usage.Table
	whois      whois.Table
	sessions   status.Sessions
	traces     *telemetry.Tracer               // nil if no collector is configured
	identities atomic.Pointer[hostdir.SVIDSet] // SVIDs for new connections, and the roots that verify their peers
	snapshot   atomic.Pointer[snapshot]        // snapshot in force
	pool       *transport.Pool
	sockets    *handover.Store
	within     time.Duration // interval in which systemd expects notifications; zero for none
	number     int           // number of this process in the sequence of handovers
	before     *handover.Before
	older      olders
	latest     time.Time  // latest time that a pass has seen; a clock that is set back puts no grant in force again
	turn       sync.Mutex // held during reconcile and by readers of the other fields
	draining   bool
	toNext     sockets // sockets on which this process answers the next one while it drains
	in         *inbound.Server
	out        *outbound.Server
	pings      atomic.Pointer[outbound.Server] // same as out, for goroutines other than the loop
	publishing atomic.Pointer[inbound.Server]  // same as in, for goroutines other than the loop
}

// snapshot is the state that one pass of the loop has read from disk. It also contains the problems
// that were found while reading. They are reported when the snapshot takes effect.
type snapshot struct {
	document   document.Document
	manifest   document.Manifest // of the document, with the access grants in force as entries of Allow
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
	f.identities.Store(&hostdir.SVIDSet{}) // the pool reads it from now on
	f.pool, err = transport.NewPool(f.identities.Load, &f.usage)
	if err != nil {
		own.close()
		return err
	}
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

// loop applies the state on disk until ctx ends or another process takes over. After a takeover, it
// waits for the remaining connections to end. Before loop returns, it ends all goroutines and
// listeners that it has started.
func (f *forwarder) loop(ctx context.Context, own sockets, unpublish func()) error {
	w := hostdir.NewWatcher(f.Log)
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

// follow applies the state on disk, and every change of it, until ctx ends.
func (f *forwarder) follow(ctx context.Context, w *hostdir.Watcher) error {
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

// directories returns the directories to watch for changes. In them, activation replaces symlinks
// and creates directories.
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

// reconcile is one pass of the loop: it reads the state on disk and makes it take effect.
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

// read reads the state on disk into a new snapshot. If a part of the state cannot be read, the new
// snapshot contains this part of the previous snapshot, given by old, and records the problem.
func (f *forwarder) read(old *snapshot) *snapshot {
	s := &snapshot{document: old.document, manifest: old.manifest, identities: old.identities}
	doc, err := f.Layout.Refresh(old.document)
	if errors.Is(err, fs.ErrNotExist) && old.manifest.Host == "" {
		return s.with(fmt.Errorf("no manifest accepted yet in %s", f.Layout.Documents()))
	}
	if err != nil {
		s.manifest = old.document.Manifest() // without the grants that were in force
		return f.withGrants(s.with(err))
	}
	s.document, s.manifest = doc, doc.Manifest()
	set, errs := hostdir.LoadSVIDs(f.Layout, s.manifest, old.identities)
	s.identities = set
	return f.withGrants(s.with(errs...))
}

// withGrants returns the snapshot with the access grants in force. If they cannot be read, none are.
func (f *forwarder) withGrants(s *snapshot) *snapshot {
	if now := time.Now().Round(0); now.After(f.latest) {
		f.latest = now
	}
	held, err := accessgrant.Read(f.Layout.AccessGrants())
	var list *trust.Revocations
	if s.identities.Trust != nil {
		list = s.identities.Trust.Revocations()
	}
	c := s.with(err)
	c.manifest.Forwarder = accessgrant.Apply(s.manifest.Forwarder, held.InForce(s.manifest, list, f.latest))
	return c
}

// with returns a copy of s with additional problems. It ignores errors that are nil.
func (s *snapshot) with(errs ...error) *snapshot {
	c := *s
	for _, err := range errs {
		if err != nil {
			c.problems = append(c.problems[:len(c.problems):len(c.problems)], err.Error())
		}
	}
	return &c
}

// start creates the inbound and the outbound server. It is called once the node has an SVID.
func (f *forwarder) start(node *trust.SVID) error {
	fresh, err := resetKey(node)
	if err != nil {
		return err
	}
	key := (*quic.StatelessResetKey)(f.sockets.Secret("reset-key", fresh[:]))
	f.in = inbound.New(inbound.Config{Node: node.ID, Relay: inbound.NewRelay(f.pool), Identities: f.identities.Load, Metrics: f.metrics, Usage: &f.usage, Whois: &f.whois, Sessions: &f.sessions, Log: f.Log, Traces: f.traces, Access: telemetry.NewAccessLog(f.Access, f.Log), Grace: f.Grace, ResetKey: key, Sockets: f.sockets})
	f.out = outbound.New(outbound.Config{Pool: f.pool, Identities: f.identities.Load, Sockets: f.sockets, Metrics: f.metrics, Log: f.Log, Access: telemetry.NewAccessLog(f.Access, f.Log), Traces: f.traces, Grace: f.Grace})
	f.pings.Store(f.out)
	f.publishing.Store(f.in)
	return nil
}

// resetKey returns the key for QUIC's stateless resets. With this key, a forwarder that restarts
// after a crash can tell its peers that their connections are gone. systemd keeps the key over the
// restart, so that it stays the same when the SVID is renewed in between.
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
