// Package binarycache serves the closures that hosts' documents name as a Nix binary cache: HTTP on
// a Unix socket that the forwarder publishes as the service florete-cache of the host.
//
//	GET /nix-cache-info
//	GET /<hash>.narinfo       of a store path
//	GET /nar/<hash>/<file>    its contents, where its narinfo refers to them
//	PUT /nar/<file>           contents, whose hash is in their name
//	PUT /<hash>.narinfo       adds a path, once its contents and references are here
//
// A node may read the paths that the closures of its own documents need, in any version that is
// kept. Other readers may read those of all hosts. Writers may read everything, because nix copy
// looks for existing paths before it sends. Everything else is not found.
//
// A path is added only with a signature of one of the cluster's signing keys over its contents. The
// provider has no signing key, and hosts verify the original signatures. A path that no named
// closure needs is removed a day after it was sent or looked up.
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

// Kind is the kind in the cache's audit rows.
const Kind = "cache"

// Config configures the cache. All fields are required.
type Config struct {
	Socket    string // that the forwarder connects to
	Forwarder string // account that alone may
	Dir       string // for what is here, and nothing else

	Policies *server.Policies
	Archive  archive.Archive
	Audit    *server.Audit
	Logger   *slog.Logger
}

// Limits on connections, in all and for each caller, and on contents that are verified at once,
// which uses processor time.
const (
	maxConns, maxConnsOfCaller = 1024, 32
	maxVerified                = 2
)

// Paths stay for grace though no document names them, and are swept so often.
const (
	grace      = 24 * time.Hour
	sweepEvery = time.Hour
)

type cache struct {
	Config
	refusals  announced.Refusals
	verifying chan struct{}

	mu       sync.Mutex // of what is in Dir, but for temporary files
	keys     string     // that signed is about
	known    map[string]*path
	closures map[string]map[string]bool // roots → hashes
	claim    int64                      // bytes that are about to arrive

	namedMu sync.Mutex
	trees   string              // of the versions that named is of
	named   map[string][]string // host → hashes
}

// Run serves until ctx ends. It starts to listen once the policy names somebody who may read or
// write.
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

// prepare makes the directories, and removes what an interrupted process was receiving.
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
