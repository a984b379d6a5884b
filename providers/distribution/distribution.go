// Package distribution is kind "config", which hands a node its own signed documents:
//
//	GET /config/artifact/<node>?serial=1784011430
//	If-None-Match: "sha256-…"
//	Device-Proof: LS0tLS1CRUdJTiBTU0gg…
//	→ {"documents":[{"envelope":"…","body":"…","signature":"…"}, …]}
//
//	GET /config/watch?from=17&serial=1784011430
//	→ the same and Documents-Revision: 18, as soon as there is something new since revision 17
//
// They are those of the newest version in the archive that the node is offered: during a
// rollout those of the former one, until its wave comes. florctl publish fills the archive.
// The host verifies their signatures: a provider can withhold documents, not forge them.
package distribution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"sync"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/advance"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/binarycache"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
	"github.com/florete/florete/providers/relay"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Name of the kind.
const Name = "config"

// Settings are the kind's section of the settings file.
type Settings struct {
	Keep server.Number `json:"keep"` // how many versions stay; 10 unless written

	// Where operators call, and the account of the forwarder that they come through: what
	// the host's units have, unless written.
	Socket    string `json:"control" path:""`
	Forwarder string `json:"forwarder"`

	// Where the runtime directories of other kinds' processes are; /run unless written.
	Run string `json:"run" path:""`

	// Where hosts reach the Nix binary cache, likewise, and where its paths are.
	Cache    string `json:"cache" path:""`
	CacheDir string `json:"cacheDir" path:""`
}

// State is what was published, and who joined. Tokens are in no backup: a use would come back. A rollout at work ends with the state that it is in.
func (*Settings) State() server.State {
	return server.State{Remembered: append(archive.Remembered(), join.RequestPrefix), Restored: archive.Restored, Ending: map[string]time.Duration{archive.Held: 0}}
}

// Kind makes the kind.
func (s *Settings) Kind(p server.Process) server.AnyKind { return server.Documents(s.operated(p)) }

func (s *Settings) operated(p server.Process) operated {
	a := archive.Archive{Store: p.Store}
	return operated{New(archive.Archive{Store: store.Local(p.Store)}), s.Control(p), binarycache.Config{
		Socket: cmp.Or(s.Cache, filepath.Join(runtimeDir(p), "cache.sock")), Forwarder: s.forwarder(p),
		Dir: cmp.Or(s.CacheDir, filepath.Join(p.Dir, "cache")), Policies: p.Policies, Archive: a, Audit: p.Audit, Logger: p.Logger,
	}, &advance.Runner{Archive: a, Kind: Name, Logger: p.Logger}, relist{a, p.Policies, p.Logger}}
}

// Control is the API for operators.
func (s *Settings) Control(p server.Process) control.Config {
	return control.Config{
		Socket: cmp.Or(s.Socket, filepath.Join(runtimeDir(p), "control.sock")), Forwarder: s.forwarder(p),
		Relayed: func(kind string) string {
			return filepath.Join(cmp.Or(s.Run, "/run"), p.Instance.Unit("provider-"+kind), relay.Socket)
		},
		Spool: p.Dir, Policies: p.Policies, Archive: archive.Archive{Store: p.Store}, Keep: s.Keep.Or(10), Audit: p.Audit, Log: p.Log, Logger: p.Logger,
	}
}

func runtimeDir(p server.Process) string {
	return filepath.Join("/run", p.Instance.Unit("provider-"+Name))
}

func (s *Settings) forwarder(p server.Process) string {
	return cmp.Or(s.Forwarder, p.Instance.String())
}

// operated is a Provider that operators reach, and whose binary cache hosts do, with its
// rollouts.
type operated struct {
	Provider
	control control.Config
	cache   binarycache.Config
	rollout *advance.Runner
	relist  relist
}

// Run serves operators and the cache, steps the rollout at work, and keeps the revocation list.
func (o operated) Run(ctx context.Context, ready func()) error {
	ready() // hosts wait for nothing of that
	var all sync.WaitGroup
	all.Go(func() { binarycache.Run(ctx, o.cache) })
	all.Go(func() { o.rollout.Run(ctx) })
	all.Go(func() { o.relist.run(ctx) })
	control.Run(ctx, o.control)
	all.Wait()
	return nil
}

// InForce is the version that a majority has: a member that lags may still have the one before,
// which would look like a rollback.
func (o operated) InForce(ctx context.Context) (server.Version, error) {
	return inForce(ctx, o.control.Archive)
}

// Join decides on a device that requests to be admitted as a host. It may write, so the store
// is not one for reading alone.
func (o operated) Join(ctx context.Context, c server.Call, j hostapi.Join, from string) (hostapi.Joined, server.Decision, error) {
	return join.Receive(ctx, o.control.Archive.Store, c, j, from)
}

// Provider is the kind "config".
type Provider struct{ archive archive.Archive }

var (
	_ server.Watcher  = Provider{}
	_ server.Receiver = Provider{}
	_ server.Deployed = Provider{}
	_ server.Runner   = operated{}
	_ server.Joiner   = operated{}
)

// New makes the kind on an archive.
func New(a archive.Archive) Provider { return Provider{a.Remembering()} }

// Name of the kind.
func (p Provider) Name() string { return Name }

// Compile rejects settings, of which there are none.
func (p Provider) Compile(policy document.Policy) (struct{}, error) {
	return struct{}{}, server.Settings(policy, Name, &struct{}{})
}

// InForce is the version that is served.
func (p Provider) InForce(ctx context.Context) (server.Version, error) {
	return inForce(ctx, p.archive)
}

func inForce(ctx context.Context, a archive.Archive) (server.Version, error) {
	v, err := a.Newest(ctx)
	if errors.Is(err, archive.ErrNone) {
		return server.Version{}, nil
	}
	return server.Version{Name: "the publication", Digest: v.Tree, Serial: v.Serial, Detail: map[string]string{
		"rev": v.Rev, "hosts": fmt.Sprint(v.Hosts), "signer": v.Signer,
	}}, err
}

// Read reads the documents of the calling node. All are of one version.
func (p Provider) Read(ctx context.Context, c server.Call, has string) (hostapi.Artifact, error) {
	documents, same, err := p.archive.Documents(ctx, c.Caller.Name(), has)
	if err == nil && !same && len(documents) == 0 {
		err = archive.ErrNone
	}
	return hostapi.Artifact{Documents: documents, NotModified: same}, missing(c, err)
}

// Revocations is the list that operators signed last.
func (p Provider) Revocations(ctx context.Context) (*trust.SignedRevocations, int64, error) {
	list, err := p.archive.Revocations(ctx)
	if err != nil || list.Number == 0 {
		return nil, 0, err
	}
	return &list.Signed, list.Number, nil
}

// Changes yields the revision of what nodes are offered, and of each change.
func (p Provider) Changes(ctx context.Context) iter.Seq2[int64, error] { return p.archive.Changes(ctx) }

// missing is err for a host whose documents are not here yet.
func missing(c server.Call, err error) error {
	if errors.Is(err, archive.ErrRestored) {
		return hostapi.Errorf(hostapi.CodeMissing, "documents of %s: none are published here since its state was restored", c.Caller.Short())
	}
	if errors.Is(err, archive.ErrNone) {
		return hostapi.Errorf(hostapi.CodeMissing, "documents of %s: none are published here yet", c.Caller.Short())
	}
	return err
}
