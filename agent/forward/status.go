package forward

import (
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/sessions"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// status returns the current status of the forwarder, as the status socket shows it.
func (f *forwarder) status() status.Report {
	s := f.snapshot.Load()
	m := s.manifest
	r := status.Report{
		Process: os.Getpid(), Host: m.Host, Cluster: m.Cluster, State: "waiting", Problems: slices.Concat([]string{}, s.problems),
		Identities: []status.Identity{}, Needs: []status.Need{}, Listen: slices.Concat([]string{}, m.Forwarder.Listen),
		Published: []status.Published{}, Reachable: []status.Reachable{}, SOCKS: []status.SOCKS{},
		PeerConnections: f.usage.Rows(), Handshakes: f.usage.Handshakes(), Summary: f.metrics.Summary(),
	}
	if s.running {
		r.State = hostreport.Running
	}
	if f.Unconfined != nil {
		r.Unconfined = f.Unconfined.Error()
	}
	if m.Host != "" {
		r.Manifest = &status.Version{Serial: s.document.Envelope.Serial, Digest: s.document.Envelope.Digest, Rev: s.document.Envelope.Rev, Signing: s.document.Signing()}
	}
	if s.identities.Trust != nil {
		list := s.identities.Trust.Revocations()
		r.Revocations, r.Withheld = list.Reported(), f.Layout.Withheld(m, list, time.Now())
	}
	r.Stale = int64(f.Layout.Stale(m, time.Now()).Seconds())
	r.Pending, _ = f.Layout.PendingChange()
	r.Undone, _ = f.Layout.Undone()
	r.Audit = f.Layout.AuditFaults()
	if m.Identity.Joins {
		r.DeviceKey = f.Layout.DeviceKeyIn()
	}
	var svids []*trust.SVID
	for _, p := range r.Paths {
		r.Connections += p.Live
	}
	r.Draining, r.Sessions = f.older.report(f.Socket), f.sessions.List()
	for _, d := range r.Draining {
		r.Sessions = append(r.Sessions, d.Sessions...)
	}
	slices.SortFunc(r.Sessions, sessions.Compare)
	for _, n := range m.Needs {
		state, _ := f.Layout.NeedState(n.ID) // a state that cannot be read is shown as empty
		r.Needs = append(r.Needs, status.Need{ID: n.ID, Kind: n.Kind, NeedState: state})
		if !hostdir.IsForwarderSVID(n) {
			continue
		}
		if id, err := n.CertID(); err == nil {
			svid := s.identities.SVID(id)
			svids = append(svids, svid)
			r.Identities = append(r.Identities, status.Identity{ID: id, Expires: expires(svid), Workload: byWorkloadAPI(m, id)})
		}
	}
	r.Fallbacks = f.pool.Fallbacks()
	if in := f.publishing.Load(); in != nil {
		for _, u := range in.Uplinks() {
			r.Uplinks = append(r.Uplinks, status.Uplink{Relay: u.Relay, Transport: u.Transport, Since: u.Since, Error: u.Error})
		}
	}
	r.NAT = f.pool.NAT()
	if in := f.publishing.Load(); in != nil && in.NAT() != transport.NATUnknown {
		r.NAT = in.NAT()
	}
	for _, p := range f.pool.PathsInUse() {
		r.RelayedTo = append(r.RelayedTo, status.Path{Target: p.Target, Caller: p.Caller, Path: p.Path, Since: p.Since, Why: p.Why})
	}
	r.Ending = trust.Ending(svids, s.identities.Trust, time.Now())
	if trust := s.identities.Trust; trust != nil {
		r.Roots = trust.Fingerprints()
	}
	r.Anchors = f.pool.Anchors()
	for _, p := range m.Forwarder.Publish {
		svid := s.identities.SVID(p.ID)
		allow := []spiffe.ID{}
		for _, x := range p.Allow {
			allow = append(allow, x.ID)
		}
		serving := s.running && svid != nil && svid.Valid(time.Now())
		r.Published = append(r.Published, status.Published{ID: p.ID, Port: p.Port, Protocol: p.Protocol, Upstream: p.Upstream, Allow: allow, Serving: serving})
	}
	for _, x := range m.Forwarder.Entries {
		r.Entries = append(r.Entries, status.Entry{ID: x.ID, Port: x.Port, Protocol: x.Protocol, Listen: x.Listen, ServerNames: x.ServerNames, From: x.From, Outside: x.Outside, Caller: x.Caller})
	}
	for _, x := range m.Forwarder.Reach {
		if d, err := spiffe.Dial(x.ID); err == nil {
			r.Reachable = append(r.Reachable, status.Reachable{ID: x.ID, Port: x.Port, Protocol: x.Protocol, Name: spiffe.Render(d), Listen: x.Listen.String(), Callers: x.Callers, Endpoints: x.Endpoints, Via: x.Via})
		}
	}
	for _, x := range m.Forwarder.SOCKS {
		r.SOCKS = append(r.SOCKS, status.SOCKS{ID: x.ID, Listen: x.Listen.String()})
	}
	return r
}

// byWorkloadAPI reports whether processes of this host may get an identity's SVID from the Workload
// API.
func byWorkloadAPI(m document.Manifest, id spiffe.ID) bool {
	return slices.ContainsFunc(m.Forwarder.Callers, func(c document.Caller) bool { return c.Workload && c.ID == id })
}

func expires(s *trust.SVID) *time.Time {
	if s == nil {
		return nil
	}
	return &s.Cert.Leaf.NotAfter
}

// report logs the differences between two snapshots and notifies systemd. The notification also
// resets systemd's watchdog.
func (f *forwarder) report(old, s *snapshot) {
	if e := s.document.Envelope; e.Digest != old.document.Envelope.Digest {
		f.Log.Info("manifest in force", "serial", e.Serial, "digest", e.Digest)
	}
	for _, p := range s.problems {
		if !slices.Contains(old.problems, p) {
			f.Log.Warn("problem", "error", p)
		}
	}
	if f.within > 0 {
		f.notify(daemon.SdNotifyWatchdog)
	}
	switch {
	case !s.running && s.manifest.Host == "":
		f.notify("STATUS=waiting for a manifest")
	case !s.running:
		f.notify(fmt.Sprintf("STATUS=waiting for the certificate of %s", s.manifest.Identity.ID))
	default:
		state := fmt.Sprintf("STATUS=%s: %d published, %d reachable, %d problems",
			s.manifest.Host, len(s.manifest.Forwarder.Publish), len(s.manifest.Forwarder.Reach), len(s.problems))
		if !old.running {
			f.Log.Info("running", "as", s.manifest.Identity.ID)
			state = daemon.SdNotifyReady + "\n" + state
		}
		f.notify(state)
	}
}

// notify sends a state to systemd (sd_notify(3)). It does nothing if systemd does not run the
// forwarder.
func (f *forwarder) notify(state string) {
	if _, err := daemon.SdNotify(false, state); err != nil {
		f.Log.Warn("notify", "error", err)
	}
}
