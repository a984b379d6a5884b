package binarycache

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/store"
)

// path describes a store path in the cache.
type path struct {
	file   string   // file of its contents, below nar
	refs   []string // hashes of its references, without its own hash
	signed bool     // one of the cluster's keys has signed it
	whole  bool     // its whole closure is known to be present
}

const infoExt = ".narinfo"

func (c *cache) infoFile(hash string) string { return filepath.Join(c.Dir, hash+infoExt) }

// path returns the path with the given hash. It returns nil if the path is absent. The caller must
// hold c.mu.
func (c *cache) path(hash string) *path {
	if p := c.known[hash]; p != nil {
		return p
	}
	b, err := os.ReadFile(c.infoFile(hash))
	if err != nil {
		return nil
	}
	i, file, err := parseInfo(hash, b)
	if err != nil {
		c.Logger.Error("a narinfo has changed since it was written: remove it, and copy its path again", "file", c.infoFile(hash), "error", err)
		return nil
	}
	p := &path{file: file, signed: verify(i, strings.Split(c.keys, "\n")) == nil}
	for _, r := range i.References {
		if h := hashOf(r); h != hash {
			p.refs = append(p.refs, h)
		}
	}
	c.known[hash] = p
	return p
}

// closure returns the paths in the closure of roots that are present. The result whole is false if
// a path of the closure is absent. The caller must hold c.mu.
func (c *cache) closure(roots ...string) (found map[string]bool, whole bool) {
	found, whole = map[string]bool{}, true
	for left := slices.Clone(roots); len(left) > 0; {
		hash := left[len(left)-1]
		left = left[:len(left)-1]
		if found[hash] {
			continue
		}
		p := c.path(hash)
		if p == nil {
			whole = false
			continue
		}
		found[hash] = true
		left = append(left, p.refs...)
	}
	return found, whole
}

// whole reports whether all paths in the closure of a path are present. The caller must hold c.mu.
func (c *cache) whole(hash string) bool {
	if p := c.path(hash); p == nil || p.whole {
		return p != nil
	}
	found, whole := c.closure(hash)
	for h := range found {
		c.known[h].whole = c.known[h].whole || whole
	}
	return whole
}

// maxClosures is the largest number of closures in memory. They are cached because a host requests
// hundreds of narinfos one after the other.
const maxClosures = 64

// needs reports whether the closure of roots contains a path. The caller must hold c.mu.
func (c *cache) needs(roots []string, hash string) bool {
	slices.Sort(roots)
	key := strings.Join(roots, " ")
	found, ok := c.closures[key]
	if !ok {
		if len(c.closures) >= maxClosures {
			clear(c.closures)
		}
		found, _ = c.closure(roots...)
		c.closures[key] = found
	}
	return found[hash]
}

// readable returns the path with the given hash. It returns nil if the path is absent or the caller
// may not read it.
func (c *call) readable(hash string) (*path, error) {
	var roots []string
	if c.access != document.AccessWrite {
		named, err := c.names(c.r.Context())
		if err != nil {
			return nil, err
		}
		for host, hashes := range named {
			if c.caller.Kind() != spiffe.KindNode || c.caller.Name() == host {
				roots = append(roots, hashes...)
			}
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if keys := strings.Join(c.policy.Trust.SigningKeys, "\n"); keys != c.keys {
		c.keys = keys
		clear(c.known)
	}
	if c.access != document.AccessWrite && !c.needs(roots, hash) {
		return nil, nil
	}
	p := c.path(hash)
	if p == nil || !p.signed || !c.whole(hash) {
		return nil, nil
	}
	if c.access == document.AccessWrite {
		c.keep(c.infoFile(hash))
	}
	return p, nil
}

// keep protects a file from removal for the time grace. It is called when a writer finds that the
// file is present, because the writer then does not send the file again. The caller must hold c.mu.
func (c *cache) keep(file string) bool {
	now := time.Now()
	return os.Chtimes(file, now, now) == nil
}

// names returns the hashes of the store paths that the documents of each host name, in all versions
// that are kept. The keys are the names of the hosts.
func (c *cache) names(ctx context.Context) (map[string][]string, error) {
	c.namedMu.Lock()
	defer c.namedMu.Unlock()
	for {
		versions, err := c.Archive.Versions(ctx)
		if err != nil {
			return nil, err
		}
		trees := treesOf(versions)
		if c.named != nil && trees == c.trees {
			return c.named, nil
		}
		named := map[string][]string{}
		for _, v := range versions {
			var closures map[string]string
			if closures, err = c.Archive.Closures(ctx, v); err != nil {
				break
			}
			for host, path := range closures {
				if hash := hashOf(path); !slices.Contains(named[host], hash) {
					named[host] = append(named[host], hash)
				}
			}
		}
		switch {
		case err == nil:
			c.trees, c.named = trees, named
			return named, nil
		case !errors.Is(err, store.ErrNotFound):
			return nil, err
		}
		// A version was removed meanwhile.
		if now, gone := c.Archive.Versions(ctx); gone != nil || treesOf(now) == trees {
			return nil, err
		}
	}
}

func treesOf(versions []archive.Version) string {
	var all strings.Builder
	for _, v := range versions {
		all.WriteString(v.Tree + "\n")
	}
	return all.String()
}
