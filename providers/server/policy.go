package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
)

// pollEvery is how often the policy's directory is looked at. The envelope names
// every change of the body, so that is all that is read.
const pollEvery = time.Second

// Policies is the policy in force, read from a directory and replaced when what is
// there changes. A policy that cannot be served is refused and the old one stays.
type Policies struct {
	dir     string
	kinds   []Kind
	log     *slog.Logger
	now     atomic.Pointer[inForce]
	refused []byte // the envelope that was refused last, to say so once
	failing *failing
}

// inForce is a policy with what is looked up in it.
type inForce struct {
	florete.Policy
	serial   int64
	rev      string
	envelope []byte
	roots    *florete.Roots
	grants   map[asked]florete.Grant
	requests map[asked]string        // the canonical JSON of each grant's request
	reads    map[asked]florete.Grant // by kind instead of need
	hostKeys map[florete.ID]ssh.PublicKey
}

// asked is what a grant is found by.
type asked struct {
	caller florete.ID
	need   string
}

// OpenPolicies reads the policy in dir.
func OpenPolicies(dir string, log *slog.Logger) (*Policies, error) {
	if log == nil {
		log = slog.Default()
	}
	p := &Policies{dir: dir, log: log}
	f, err := p.read()
	if err != nil {
		return nil, err
	}
	p.now.Store(f)
	return p, nil
}

// Current is the policy in force.
func (p *Policies) Current() florete.Policy { return p.now.Load().Policy }

// use checks the policy in force, and every one after it, with the kinds. A kind that
// cannot serve the policy in force fails, and the others are served; it is among those
// that use returns also where this provider has no settings for it.
func (p *Policies) use(kinds []Kind, f *failing) ([]Kind, error) {
	now := p.now.Load()
	for _, name := range slices.Sorted(maps.Keys(now.Kinds)) {
		if !slices.ContainsFunc(kinds, func(k Kind) bool { return k.Name() == name }) {
			kinds = append(kinds, missing(name))
		}
	}
	p.kinds, p.failing = kinds, f
	for _, k := range kinds {
		f.set(failure{k.Name(), true}, checkKind(k, now))
	}
	return kinds, p.check(now)
}

// recheck checks again the kinds that could not serve the policy in force: it is another
// now, or a person has mended what they need.
func (p *Policies) recheck() {
	for _, k := range p.kinds {
		if of := (failure{k.Name(), true}); p.failing.has(of) {
			p.failing.set(of, checkKind(k, p.now.Load()))
		}
	}
}

// checkKind refuses a policy that runs a kind which cannot serve it.
func checkKind(k Kind, f *inForce) error {
	if _, ok := f.Kinds[k.Name()]; !ok {
		return nil
	}
	return k.Check(f.Policy)
}

func (p *Policies) read() (*inForce, error) {
	d, err := florete.Read(p.dir, florete.DocPolicy)
	if err != nil {
		return nil, fmt.Errorf("policy: %w", err)
	}
	policy := d.Policy()
	f := &inForce{Policy: policy, serial: d.Envelope.Serial, grants: map[asked]florete.Grant{},
		requests: map[asked]string{}, reads: map[asked]florete.Grant{}}
	f.envelope, _, _ = d.Bytes()
	f.rev = d.Envelope.Rev
	if f.hostKeys, err = hostKeys(policy); err != nil {
		return nil, err
	}
	if f.roots, err = florete.NewRoots(policy.TrustDomain, policy.Trust.Roots); err != nil {
		return nil, fmt.Errorf("policy of %s: %w", policy.Host, err)
	}
	if id := policy.Provider.ID; id.Kind() != florete.KindService || id.Name() != florete.ProviderService || id.TrustDomain() != policy.TrustDomain {
		return nil, fmt.Errorf("policy of %s: provider %s, want service/<node>/%s of %s", policy.Host, id, florete.ProviderService, policy.TrustDomain)
	}
	for _, g := range policy.Grants {
		at := asked{g.Caller, g.Need}
		if _, twice := f.grants[at]; twice {
			return nil, fmt.Errorf("policy of %s: need %q of %s: granted twice", policy.Host, g.Need, g.Caller)
		}
		canonical, err := api.Canonical(g.Request)
		if err != nil {
			return nil, fmt.Errorf("policy of %s: need %q of %s: request: %w", policy.Host, g.Need, g.Caller, err)
		}
		f.grants[at], f.requests[at], f.reads[asked{g.Caller, g.Kind}] = g, string(canonical), g
	}
	return f, p.check(f)
}

// check refuses what no provider can serve, and for another provider than this.
func (p *Policies) check(f *inForce) error {
	if old := p.now.Load(); old != nil && (old.Provider.ID != f.Provider.ID || !slices.Equal(old.Provider.Listen, f.Provider.Listen)) {
		return fmt.Errorf("policy of %s: this provider becomes %s at %s, and was %s at %s: restart it",
			f.Host, f.Provider.ID, strings.Join(f.Provider.Listen, ", "), old.Provider.ID, strings.Join(old.Provider.Listen, ", "))
	}
	for _, g := range f.Grants {
		if _, ok := f.Kinds[g.Kind]; !ok {
			return fmt.Errorf("policy of %s: need %q of %s: kind %q is not among those it runs", f.Host, g.Need, g.Caller, g.Kind)
		}
	}
	return nil
}

// checkNext refuses a policy in place of the one in force that a kind cannot serve.
func (p *Policies) checkNext(f *inForce) error {
	here := map[string]bool{}
	for _, k := range p.kinds {
		here[k.Name()] = true
		if err := checkKind(k, f); err != nil {
			return err
		}
	}
	for name := range f.Kinds {
		if !here[name] {
			return missing(name).Check(f.Policy)
		}
	}
	return nil
}

// run keeps the policy in force up to date until ctx ends, and calls each after every look
// at it.
func (p *Policies) run(ctx context.Context, each func()) {
	tick := time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			p.poll()
			each()
		}
	}
}

func (p *Policies) poll() {
	old := p.now.Load()
	envelope, err := os.ReadFile(filepath.Join(p.dir, florete.EnvelopeFile(florete.DocPolicy)))
	if errors.Is(err, os.ErrNotExist) {
		envelope = []byte{} // seen, and nothing there
	}
	if bytes.Equal(envelope, old.envelope) {
		p.refused = nil
		p.recheck()
		return
	}
	f, err := p.read()
	if err == nil {
		err = p.checkNext(f)
	}
	if err != nil {
		if p.refused == nil || !bytes.Equal(p.refused, envelope) {
			p.log.Error("the new policy is refused, the old one stays in force", "error", err, "serial", old.serial)
		}
		p.refused = envelope
		return
	}
	p.refused = nil
	p.now.Store(f)
	p.recheck()
	p.log.Info("policy in force", "serial", f.serial, "grants", len(f.Grants))
}
