// Package distribution implements kind "config". It hands a node its signed documents, keeps the
// node's reports, and receives devices that request to join:
//
//	GET /config/artifact/<node>?serial=1784011430
//	If-None-Match: "sha256-…"
//	Device-Proof: LS0tLS1CRUdJTiBTU0gg…
//	→ {"documents":[{"envelope":"…","body":"…","signature":"…"}, …]}
//
//	GET /config/watch?from=17&serial=1784011430
//	→ the same and Documents-Revision: 18, as soon as there is something new since revision 17
//
//	POST /config/report {"sequence":7, …}
//	→ {"sequence":7}, and the rotations that operators ordered of the node
//
//	POST /config/join {"node":"spiffe://…", …}
//	→ whether a device without a certificate is admitted as a host
//
// The documents are those of the newest version in the archive, or, during a rollout, of the former
// version until the node's wave comes. florctl publish fills the archive. Hosts verify the
// signatures, so a provider can withhold documents but not forge them.
//
// Its Runner owns a goroutine for each node that waits, outside of net/http; one that follows the
// archive; one that looks for a majority of a shared store while nodes watch; the sockets of
// operators and of the binary cache with a goroutine for each connection; the hourly sweep of the
// cache; and the steps of a rollout.
package distribution

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"sync"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/advance"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/binarycache"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/providers/tlog"
)

// Name is the name of the kind.
const Name = "config"

// Settings is the kind's section of the settings file.
type Settings struct {
	Keep server.Number `json:"keep"` // number of versions to keep; the default is 10

	// Socket is the path of the Unix socket of the operators' API. Forwarder is the Unix account of
	// the forwarder, which connects to the socket. The defaults suit the units of a host.
	Socket    string `json:"control" path:""`
	Forwarder string `json:"forwarder"`

	// Run is the directory that contains the runtime directories of other kinds' processes. If it
	// is empty, the directory is "/run".
	Run string `json:"run" path:""`

	// Cache is the path of the Unix socket of the Nix binary cache for hosts. CacheDir is the
	// directory in which the cache keeps store paths. The defaults suit the units of a host.
	Cache    string `json:"cache" path:""`
	CacheDir string `json:"cacheDir" path:""`
}

// State returns the keys in the state store that belong in a backup: published versions and the
// records of joined hosts. Join tokens are left out, because a restore would make used tokens valid
// again. A rollout in progress is left out as well.
func (*Settings) State() server.State {
	return server.State{Remembered: append(archive.Remembered(), join.RequestPrefix), Restored: archive.Restored, Ending: map[string]time.Duration{archive.Held: 0}}
}

// Kind returns the work of the process of kind "config": it offers documents to hosts, serves the
// operators' API and the binary cache of hosts, carries out rollouts, and keeps its revocation list
// up to date.
func (s *Settings) Kind(p server.Process) server.AnyKind {
	a := archive.Archive{Store: p.Store}
	operators := s.Control(p, func() (map[string]tlog.Local, error) { return map[string]tlog.Local{Name: p.Log.Local()}, nil })
	cache := binarycache.Config{
		Socket: cmp.Or(s.Cache, filepath.Join(runtimeDir(p), "cache.sock")), Forwarder: s.forwarder(p),
		Dir: cmp.Or(s.CacheDir, filepath.Join(p.Dir, "cache")), Policies: p.Policies, Archive: a, Audit: p.Audit, Logger: p.Logger,
	}
	rollout := &advance.Runner{Archive: a, Kind: Name, Logger: p.Logger}
	return New(a,
		func(ctx context.Context) { control.Run(ctx, operators) },
		func(ctx context.Context) { binarycache.Run(ctx, cache) },
		rollout.Run,
		relist{a, p.Policies, p.Logger}.run,
	).Kind()
}

// Control returns the configuration of the operators' API. The function logs returns the audit logs
// that operators can read through it.
func (s *Settings) Control(p server.Process, logs control.Logs) control.Config {
	return control.Config{
		Socket: cmp.Or(s.Socket, filepath.Join(runtimeDir(p), "control.sock")), Forwarder: s.forwarder(p),
		Relayed: func(kind string) string {
			return filepath.Join(cmp.Or(s.Run, "/run"), p.Instance.Unit("provider-"+kind), announced.OperatorSocket)
		},
		Spool: p.Dir, Policies: p.Policies, Archive: archive.Archive{Store: p.Store}, Keep: s.Keep.Or(10), Audit: p.Audit, Logs: logs, Logger: p.Logger,
	}
}

func runtimeDir(p server.Process) string {
	return filepath.Join("/run", p.Instance.Unit("provider-"+Name))
}

func (s *Settings) forwarder(p server.Process) string {
	return cmp.Or(s.Forwarder, p.Instance.String())
}

// Distribution offers hosts the documents that operators have published, and stores the reports
// that hosts send. The documents come from an archive, and the reports are stored in the archive's
// store.
type Distribution struct {
	// Watch is the longest time that a node waits for new documents before it gets an answer
	// without them.
	Watch time.Duration

	archive archive.Archive
	near    archive.Archive // archive at the nearest member of the store, which may lag
	beside  []func(context.Context)

	server    *server.Server
	watches   *conns.PerKey[string] // waiting requests by node
	revisions *revisions
	parking   *parking
	guesses   guesses
}

// New returns a Distribution of the documents in an archive. While the Distribution runs, it also
// runs the given functions, with a context that ends when the Distribution ends.
func New(a archive.Archive, beside ...func(context.Context)) *Distribution {
	parking := newParking()
	return &Distribution{
		Watch: 5 * time.Minute, archive: a, near: archive.Archive{Store: store.Local(a.Store)}.Remembering(), beside: beside,
		watches: conns.NewPerKey[string](watchesOf), revisions: newRevisions(parking.wake), parking: parking,
	}
}

// Kind returns the kind "config", with which a server.Server serves the distribution.
func (d *Distribution) Kind() server.AnyKind {
	k := server.Subject(Name, Check)
	k.Routes, k.Listener, k.Run, k.InForce = d.routes, d.parking.listener, d.run, d.inForce
	return k
}

// Check returns an error if a policy contains settings for the kind "config". The kind has no
// settings.
func Check(policy document.Policy) error { return server.Settings(policy, Name, &struct{}{}) }

// routes returns the handlers of the distribution. The keys consist of method and path.
func (d *Distribution) routes(s *server.Server) map[string]http.HandlerFunc {
	d.server = s
	return map[string]http.HandlerFunc{
		"GET " + hostapi.PathArtifact + "{node}": d.get,
		"GET " + hostapi.PathWatch:               d.watch,
		"POST " + hostapi.PathReport:             d.report,
		"POST " + hostapi.PathJoin:               d.join,
	}
}

// run follows published versions and runs the functions in the field beside, until ctx ends and
// each waiting node is answered.
func (d *Distribution) run(ctx context.Context, ready func()) error {
	ready() // answers to hosts need none of this
	var all sync.WaitGroup
	for _, work := range append(d.beside, d.follow, d.majority, d.parking.endAfter) {
		all.Go(func() { work(ctx) })
	}
	all.Wait()
	return nil
}

// inForce returns the version that a majority of the store's members has. A single member may lag
// and have an earlier version, which would look like a rollback.
func (d *Distribution) inForce(ctx context.Context) (server.Version, error) {
	v, err := d.archive.Newest(ctx)
	if errors.Is(err, archive.ErrNone) {
		return server.Version{}, nil
	}
	return server.Version{Name: "the publication", Digest: v.Tree, Serial: v.Serial, Detail: map[string]string{
		"rev": v.Rev, "hosts": fmt.Sprint(v.Hosts), "signer": v.Signer,
	}}, err
}
