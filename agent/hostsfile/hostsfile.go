// Package hostsfile maintains the names of the cluster's services in hosts(5), with the addresses
// of their local listeners, so that ordinary programs can connect to them:
//
//	# florete: what cluster demo offers this host; kept by florete-hosts-file.service
//	127.103.91.74 auth.demo.flor.rete
//	127.103.91.74 login.demo.flor.rete
//	# florete: end
//
// The block follows the documents in force, whatever their origin, and is restored if another
// program rewrites the file. Between the marks, lines with loopback addresses of names in .rete
// belong to this package. It changes no other line, even if the marks are damaged. Each instance of
// the host has a block of its own, "# florete_<instance>: …".
package hostsfile

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/agent/watch"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/spiffe"
)

// Config is whose names go where.
type Config struct {
	Instance hostdir.Instance
	Layout   hostdir.Layout
	Hosts    string // the file, DefaultHosts
	Log      *slog.Logger
}

// DefaultHosts is where programs look names up.
const DefaultHosts = "/etc/hosts"

// poll is how often the files are read anyway.
const poll = 10 * time.Second

// Run keeps the names until ctx ends. What fails is logged, and tried again.
func Run(ctx context.Context, c Config) error {
	var failed journal.Once
	var document document.Document
	watch.Follow(ctx, c.Log, poll, func() []string {
		err := c.apply(&document)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // no documents yet
		}
		if failed.News(err) {
			c.Log.Warn("names are not kept", "error", err)
		}
		if err != nil {
			// Not until something changes: what was tried did.
			select {
			case <-ctx.Done():
			case <-time.After(poll):
			}
		}
		return []string{filepath.Dir(c.Hosts), c.Layout.Documents()}
	})
	return nil
}

// apply makes the block that of the manifest in force, of which document is the one
// applied before.
func (c Config) apply(document *document.Document) error {
	doc, err := c.Layout.Refresh(*document)
	if err != nil {
		return err
	}
	*document = doc
	m := doc.Manifest()
	changed, err := c.rewrite(block(c.Instance, m))
	if changed {
		c.Log.Info("names are up to date", "file", c.Hosts, "names", len(m.Forwarder.Reach))
	}
	return err
}

// mark is a line that begins or ends the block of an instance.
var mark = regexp.MustCompile(`^# (` + hostdir.Prefix + `(?:_[a-z0-9-]+)?): (what cluster |end$)`)

// block is what a host's manifest puts into the file; empty where it reaches nothing.
func block(of hostdir.Instance, m document.Manifest) string {
	var lines []string
	for _, r := range m.Forwarder.Reach {
		d, err := spiffe.Dial(r.ID)
		if err != nil {
			continue
		}
		// A wildcard is no name: SOCKS5 has it.
		for _, name := range append([]string{spiffe.Render(d)}, slices.DeleteFunc(slices.Clone(r.Aliases), document.IsWildcard)...) {
			lines = append(lines, r.Listen.Addr().String()+" "+name+"\n")
		}
	}
	if len(lines) == 0 {
		return ""
	}
	slices.Sort(lines)
	return fmt.Sprintf("# %s: what cluster %s offers this host; kept by %s\n%s# %[1]s: end\n",
		of, m.Cluster, of.Unit("hosts-file.service"), strings.Join(slices.Compact(lines), ""))
}

// cut is a file without the lines of an instance: what is before the first of them, and
// what is after it.
func cut(text string, of hostdir.Instance) (before, after string) {
	var kept strings.Builder
	first, inside := -1, false
	for line := range strings.Lines(text) {
		bare := strings.TrimSpace(line)
		if m := mark.FindStringSubmatch(bare); m != nil {
			ours := m[1] == of.String()
			inside = ours && m[2] != "end"
			if ours {
				if first < 0 {
					first = kept.Len()
				}
				continue
			}
		} else if inside && strings.HasPrefix(bare, "127.") && strings.HasSuffix(bare, spiffe.Suffix) {
			continue
		}
		kept.WriteString(line)
	}
	if first < 0 {
		first = kept.Len()
	}
	return kept.String()[:first], kept.String()[first:]
}
