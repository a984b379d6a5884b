// Package names keeps the names of the cluster's services in hosts(5), each at its
// local listener, so that programs that know nothing of Florete just connect:
//
//	# florete: what cluster demo offers this host; kept by florete-names.service
//	127.103.91.74 auth.demo.flor.rete
//	# florete: end
//
// It follows the documents in force, wherever they came from, and puts the block back
// where something else rewrote the file. Between the two marks it takes loopback addresses
// of names in .rete for its own, and touches no other line, whatever became of the marks.
package names

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fsnotify/fsnotify"

	"florete"
)

// Config says whose names go where.
type Config struct {
	Layout florete.Layout
	Hosts  string // the file; empty for DefaultHosts
	Log    *slog.Logger
}

// DefaultHosts is where programs look names up.
const DefaultHosts = "/etc/hosts"

const (
	settle = 50 * time.Millisecond // a burst of changes is one
	retry  = 2 * time.Second       // after what failed, and while there are no documents
	glance = time.Minute           // whatever was or was not noticed
)

// Run keeps the names until ctx ends. What fails is logged, and tried again.
func Run(ctx context.Context, c Config) error {
	if c.Hosts == "" {
		c.Hosts = DefaultHosts
	}
	w, err := fsnotify.NewWatcher()
	if err != nil {
		return fmt.Errorf("watching %s: %w", c.Hosts, err)
	}
	defer w.Close()
	said := ""
	for {
		// First watched, then read: what changes in between is seen.
		wait := glance
		err := errors.Join(w.Add(filepath.Dir(c.Hosts)), w.Add(c.Layout.Documents()))
		if err == nil {
			err = c.apply()
		}
		switch {
		case err == nil:
			said = ""
		case !errors.Is(err, fs.ErrNotExist) && err.Error() != said:
			said = err.Error()
			c.Log.Warn("names are not kept", "error", err)
			fallthrough
		default:
			wait = retry
		}
		if !c.changed(ctx, w, wait) {
			return nil
		}
	}
}

// changed returns after a change or when the wait is over; false when ctx ended.
func (c Config) changed(ctx context.Context, w *fsnotify.Watcher, wait time.Duration) bool {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case e := <-w.Events:
			if filepath.Dir(e.Name) != filepath.Dir(c.Hosts) || e.Name == c.Hosts {
				timer.Reset(settle)
			}
		case err := <-w.Errors:
			c.Log.Warn("watching", "error", err)
		}
	}
}

// apply makes the block say what the documents in force say.
func (c Config) apply() error {
	doc, err := florete.Read(florete.Current(c.Layout.Documents()), florete.DocManifest)
	if err != nil {
		return err
	}
	m, err := doc.Manifest()
	if err != nil {
		return err
	}
	changed, err := rewrite(c.Hosts, block(m))
	if changed {
		c.Log.Info("names are up to date", "file", c.Hosts, "names", len(m.Forwarder.Reach))
	}
	return err
}

// The marks, by how they begin.
const (
	begins = "# florete: what cluster "
	ends   = "# florete: end"
)

// block is what a host's manifest puts into the file; empty where it reaches nothing.
func block(m florete.Manifest) string {
	var lines []string
	for _, r := range m.Forwarder.Reach {
		if d, err := florete.Dial(r.ID); err == nil {
			lines = append(lines, r.Listen.Addr().String()+" "+florete.Render(d)+"\n")
		}
	}
	if len(lines) == 0 {
		return ""
	}
	slices.Sort(lines)
	return begins + m.Cluster + " offers this host; kept by florete-names.service\n" + strings.Join(slices.Compact(lines), "") + ends + "\n"
}

// strip is a file without our lines.
func strip(text string) string {
	var out strings.Builder
	inside := false
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(bare, begins):
			inside = true
			continue
		case bare == ends:
			inside = false
			continue
		case inside && strings.HasPrefix(bare, "127.") && strings.HasSuffix(bare, ".rete"):
			continue
		}
		out.WriteString(line)
	}
	return out.String()
}
