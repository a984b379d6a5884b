// Package binarycache serves a Nix binary cache from which hosts fetch their systems, the closures
// that their documents name. The cache speaks HTTP on a Unix socket, and the forwarder publishes
// the socket as the service florete-cache of the host.
//
//	GET /nix-cache-info
//	GET /<hash>.narinfo       of a store path
//	GET /nar/<hash>/<file>    its contents, where its narinfo refers to them
//	PUT /nar/<file>           contents, whose hash is in their name
//	PUT /<hash>.narinfo       adds a path, once its contents and references are here
//
// A node may read the paths that the closures of its own documents need, in every version that is
// kept. Other readers may read the paths of all hosts. Writers may read everything, because nix
// copy looks for existing paths before it sends. All other paths are reported as not found.
//
// A path is added only if one of the cluster's signing keys has signed its contents. The provider
// has no signing key, and hosts verify the original signatures. A path that no named closure needs
// is removed a day after it was last sent or looked up.
package binarycache

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/server"
)

// Kind is the name that the audit log shows as the kind in rows of the cache.
const Kind = "cache"

// Config configures the binary cache. All fields are required.
type Config struct {
	Socket    string // Unix socket to which the forwarder connects
	Forwarder string // account of the forwarder; no other may connect
	Dir       string // directory of the cache, which contains nothing else

	Policies *server.Policies
	Archive  archive.Archive
	Audit    *server.Audit
	Logger   *slog.Logger
}

// These constants limit the connections, in total and for each caller. They also limit how many
// contents are verified at once, because this uses processor time.
const (
	maxConns, maxConnsOfCaller = 1024, 32
	maxVerified                = 2
)

// A path that no document names is kept for the time grace. The cache looks for such paths at the
// interval sweepEvery.
const (
	grace      = 24 * time.Hour
	sweepEvery = time.Hour
)

type cache struct {
	Config
	refusals  announced.Refusals
	verifying chan struct{}

	mu       sync.Mutex // protects the files in Dir, except temporary files
	keys     string     // keys for which signed was computed
	known    map[string]*path
	closures map[string]map[string]bool // hashes of the closure of roots
	claim    int64                      // bytes reserved for uploads

	namedMu sync.Mutex
	trees   string              // versions for which named was computed
	named   map[string][]string // host → hashes
}

// Run serves the binary cache until ctx ends. It begins to listen once the policy gives somebody
// access to the cache.
func Run(ctx context.Context, c Config) {
	a := newCache(c)
	var all sync.WaitGroup
	all.Go(func() { a.sweeps(ctx) })
	announced.Run(ctx, announced.Config{
		Socket: c.Socket, Forwarder: c.Forwarder, Service: spiffe.CacheService, Kind: Kind,
		Conns: maxConns, ConnsOfCaller: maxConnsOfCaller, Audit: c.Audit, Logger: c.Logger,
		Wanted:  func() bool { return len(c.Policies.Current().Cache) > 0 && a.prepare() },
		Handler: a.routes(),
	})
	all.Wait()
}

func newCache(c Config) *cache {
	return &cache{Config: c, refusals: announced.Refusals{Kind: Kind, Audit: c.Audit, Logger: c.Logger}, verifying: make(chan struct{}, maxVerified), known: map[string]*path{}, closures: map[string]map[string]bool{}}
}

func (c *cache) nars() string { return filepath.Join(c.Dir, "nar") }
func (c *cache) temp() string { return filepath.Join(c.Dir, "tmp") }

// prepare makes the directories of the cache, and removes partial uploads that an interrupted
// process left behind.
func (c *cache) prepare() bool {
	err := os.RemoveAll(c.temp())
	for _, dir := range []string{c.nars(), c.temp()} {
		if err == nil {
			err = os.MkdirAll(dir, 0o700)
		}
	}
	if err != nil {
		c.Logger.Error("the binary cache is not served", "error", err)
	}
	return err == nil
}
