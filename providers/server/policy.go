package server

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// pollEvery is the interval at which a process looks for changes in the policy's directory. It
// reads only the envelope, because the envelope changes with the body. It reads the envelope only
// if the inode, time or size of the file has changed.
const pollEvery = time.Second

// chains is the number of verified certificate chains that are remembered. They are remembered
// because callers open several connections.
const chains = 8192

// Policies provides the policy in force to a process that answers one kind of need. The policy
// tells which requests the process may answer. Policies reads it from a directory, and again when
// the directory changes. If the process cannot use the new policy, the old one stays in force.
type Policies struct {
	dir     string
	kind    string
	compile func(document.Policy) (compiled, error) // of the kind; nil before the Server has it
	log     *slog.Logger
	now     atomic.Pointer[compiledPolicy]

	verified *trust.Verified

	mu      sync.Mutex
	polled  time.Time   // last
	inForce fs.FileInfo // the file whose envelope is that of the policy in force; nil if unknown
	refused []byte      // the envelope that was refused last, to log it once
	lists   []*listFile

	newest *newestList
}

// compiledPolicy is a policy with indexes. It contains only the grants of the process's kind.
type compiledPolicy struct {
	document.Policy
	self     document.Listening // this process
	serial   int64
	rev      string
	envelope []byte
	roots    *trust.Roots
	grants   map[grantKey]document.Grant
	requests map[grantKey]string // the canonical JSON of each grant's request
	reads    map[spiffe.ID]document.Grant
	hostKeys map[spiffe.ID]ssh.PublicKey
	compiled compiled // by the kind; zero where the policy does not run it
}

// grantKey is the key of the index of grants.
type grantKey struct {
	caller spiffe.ID
	need   string
}

// OpenPolicies reads the policy from a directory, and the revocation list from a file, which need
// not exist. If the policy does not include the kind, OpenPolicies returns an error. If log is nil,
// slog.Default is used.
func OpenPolicies(dir, list, kind string, log *slog.Logger) (*Policies, error) {
	log = cmp.Or(log, slog.Default())
	p := &Policies{dir: dir, lists: []*listFile{{path: list}}, kind: kind, log: log, verified: trust.NewVerified(chains)}
	p.newest = &newestList{policies: p}
	f, err := p.read()
	if err != nil {
		return nil, err
	}
	revoked, err := trust.ReadRevocations(list, nil)
	if err != nil {
		return nil, err
	}
	f.roots = f.roots.With(revoked)
	p.now.Store(f)
	return p, nil
}

// Current returns the policy in force.
func (p *Policies) Current() document.Policy { return p.now.Load().Policy }

// Versioned returns the policy in force and its serial number.
func (p *Policies) Versioned() (document.Policy, int64) {
	f := p.now.Load()
	return f.Policy, f.serial
}

// Newest returns the policy in force. It first looks for a newer policy in the directory.
func (p *Policies) Newest() document.Policy {
	p.poll()
	return p.Current()
}

// Revoked returns the revocation list that this process uses. If it has none yet, Revoked returns
// nil.
func (p *Policies) Revoked() *trust.Revocations { return p.now.Load().roots.Revocations() }

// Self returns the SPIFFE ID and the addresses of this process.
func (p *Policies) Self() document.Listening { return p.now.Load().self }

// Compiled returns a function that returns the policy in force, as the method Compile of the kind
// decoded it. The function returns nil while the policy does not include the kind, and before a
// Server runs the kind.
func Compiled[P any](p *Policies) func() *P {
	return func() *P {
		compiled, _ := p.now.Load().compiled.policy.(*P)
		return compiled
	}
}

// use makes a kind compile the policy in force and every later policy.
func (p *Policies) use(k AnyKind) error {
	if k.Name != p.kind {
		return fmt.Errorf("kind %q: the policy was opened for kind %q", k.Name, p.kind)
	}
	f := *p.now.Load()
	var err error
	if f.compiled, err = k.compile(f.Policy); err != nil {
		return err
	}
	p.compile = k.compile
	p.now.Store(&f)
	return nil
}

func (p *Policies) read() (*compiledPolicy, error) {
	d, err := document.Read(p.dir, document.DocPolicy)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	policy := d.Policy()
	f := &compiledPolicy{Policy: policy, serial: d.Envelope.Serial, grants: map[grantKey]document.Grant{},
		requests: map[grantKey]string{}, reads: map[spiffe.ID]document.Grant{}}
	f.envelope, _, _ = d.Bytes()
	f.rev = d.Envelope.Rev
	if f.hostKeys, err = hostKeys(policy); err != nil {
		return nil, err
	}
	roots, err := trust.NewRoots(policy.TrustDomain, policy.Trust.Roots)
	if err != nil {
		return nil, fmt.Errorf("policy of %s: %w", policy.Host, err)
	}
	f.roots = roots.Remembering(p.verified)
	for _, g := range policy.Grants {
		if _, ok := policy.Kinds[g.Kind]; !ok {
			return nil, fmt.Errorf("policy of %s: need %q of %s: kind %q is not among those it runs", policy.Host, g.Need, g.Caller, g.Kind)
		}
		if g.Kind != p.kind {
			continue
		}
		at := grantKey{g.Caller, g.Need}
		if _, twice := f.grants[at]; twice {
			return nil, fmt.Errorf("policy of %s: need %q of %s: granted twice", policy.Host, g.Need, g.Caller)
		}
		canonical, err := hostapi.Canonical(g.Request)
		if err != nil {
			return nil, fmt.Errorf("policy of %s: need %q of %s: request: %w", policy.Host, g.Need, g.Caller, err)
		}
		f.grants[at], f.requests[at], f.reads[g.Caller] = g, string(canonical), g
	}
	f.self, err = p.self(policy)
	return f, err
}

// self returns the entry of this process in a policy. A policy that no longer includes the kind may
// come into force; it grants nothing. A policy that moves the process to other addresses may not
// come into force.
func (p *Policies) self(policy document.Policy) (document.Listening, error) {
	self, runs := policy.Provider[p.kind]
	old := p.now.Load()
	id, want := self.ID, spiffe.ProviderService(p.kind)
	switch {
	case !runs && old != nil:
		return old.self, nil
	case !runs:
		return self, fmt.Errorf("policy of %s: kind %q is not among those it runs: name %[1]s in providers.%[2]s.hosts, or stop this process", policy.Host, p.kind)
	case id.Kind() != spiffe.KindService || id.Name() != want || id.TrustDomain() != policy.TrustDomain:
		return self, fmt.Errorf("policy of %s: provider %s, want service/<node>/%s of %s", policy.Host, id, want, policy.TrustDomain)
	case old != nil && (old.self.ID != id || !slices.Equal(old.self.Listen, self.Listen)):
		return self, fmt.Errorf("policy of %s: this provider becomes %s at %s, and was %s at %s: restart it",
			policy.Host, id, strings.Join(self.Listen, ", "), old.self.ID, strings.Join(old.self.Listen, ", "))
	}
	return self, nil
}

// run puts new policies in force until ctx ends. It calls record with each new policy, and at every
// tenth poll.
func (p *Policies) run(ctx context.Context, record func()) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	recorded := p.now.Load()
	for n := 1; ; n++ {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.poll()
			if now := p.now.Load(); now != recorded || n%10 == 0 {
				recorded = now
				record()
			}
		}
	}
}

// rootsAfter returns the trust roots of the newest policy. It is called after a peer was refused,
// because the roots may have been replaced since the last poll.
func (p *Policies) rootsAfter() *trust.Roots {
	p.poll()
	return p.now.Load().roots
}

// poll puts a new policy and a new revocation list in force, if there are any. Strangers can cause
// calls of poll, so it does nothing shortly after the last call.
func (p *Policies) poll() {
	p.pollLists()
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.polled) < pollEvery/10 {
		return
	}
	defer func() { p.polled = time.Now() }()
	old := p.now.Load()
	path := filepath.Join(p.dir, document.EnvelopeFile(document.DocPolicy))
	info, err := os.Stat(path)
	if err == nil && unchanged(info, p.inForce) {
		return
	}
	p.inForce = nil
	envelope, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		envelope = []byte{} // seen, and nothing there
	}
	if bytes.Equal(envelope, old.envelope) {
		p.refused, p.inForce = nil, info
		return
	}
	f, err := p.read()
	if err == nil && p.compile != nil && f.Kinds[p.kind] != nil {
		f.compiled, err = p.compile(f.Policy)
	}
	if err != nil {
		if p.refused == nil || !bytes.Equal(p.refused, envelope) {
			p.log.Error("the new policy is refused, the old one stays in force", "error", err, "serial", old.serial)
		}
		p.refused = envelope
		return
	}
	p.refused = nil
	f.roots = f.roots.With(old.roots.Revocations())
	p.now.Store(f)
	p.log.Info("policy in force", "serial", f.serial, "grants", len(f.Grants))
}
