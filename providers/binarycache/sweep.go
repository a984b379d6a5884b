package binarycache

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// sweeps removes unneeded paths at regular intervals until ctx ends.
func (c *cache) sweeps(ctx context.Context) {
	for {
		if err := c.sweep(ctx, time.Now().Add(-grace)); err != nil && ctx.Err() == nil {
			c.Logger.Error("the binary cache is not swept", "error", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(sweepEvery):
		}
	}
}

// sweep removes unneeded paths and contents, if they are older than the given time. A path is
// needed if it is in the closure of a path that documents name, or of a newer path. A path is
// removed before its contents, so that everything that an interrupted sweep leaves can be read or
// is sent again.
func (c *cache) sweep(ctx context.Context, older time.Time) error {
	if _, err := os.Stat(c.nars()); os.IsNotExist(err) {
		return nil // nothing was uploaded yet
	}
	named, err := c.names(ctx)
	if err != nil {
		return err
	}
	var roots []string
	for _, hashes := range named {
		roots = append(roots, hashes...)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	defer clear(c.closures)
	infos, err := files(c.Dir)
	if err != nil {
		return err
	}
	for name, changed := range infos {
		if hash, ok := strings.CutSuffix(name, infoExt); ok && changed.After(older) {
			roots = append(roots, hash)
		}
	}
	needed, _ := c.closure(roots...)
	used := map[string]bool{}
	for hash := range needed {
		used[c.path(hash).file] = true
	}
	for name, changed := range infos {
		if hash, ok := strings.CutSuffix(name, infoExt); ok && !needed[hash] && !changed.After(older) {
			delete(c.known, hash)
			if err := remove(filepath.Join(c.Dir, name)); err != nil {
				return err
			}
		}
	}
	contents, err := files(c.nars())
	if err != nil {
		return err
	}
	if len(contents) > 0 {
		if err := syncDir(c.Dir); err != nil {
			return err
		}
	}
	for name, changed := range contents {
		if !used[name] && !changed.After(older) {
			if err := remove(filepath.Join(c.nars(), name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// files returns the files of a directory with their modification times.
func files(dir string) (map[string]time.Time, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	all := map[string]time.Time{}
	for _, e := range entries {
		info, err := e.Info()
		if err != nil {
			return nil, err
		}
		if info.Mode().IsRegular() {
			all[e.Name()] = info.ModTime()
		}
	}
	return all, nil
}
