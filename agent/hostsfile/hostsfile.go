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

// Config configures Run and Remove.
type Config struct {
	Instance hostdir.Instance
	Layout   hostdir.Layout
	Hosts    string // path of the file, DefaultHosts
	Log      *slog.Logger
}

// DefaultHosts is the path of hosts(5).
const DefaultHosts = "/etc/hosts"

// poll is the maximum interval at which the files are read again.
const poll = 10 * time.Second

// Run maintains the names until ctx ends. Errors are logged and retried.
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
			// Do not retry because of our own change of the directory.
			select {
			case <-ctx.Done():
			case <-time.After(poll):
			}
		}
		return []string{filepath.Dir(c.Hosts), c.Layout.Documents()}
	})
	return nil
}

// apply makes the block match the manifest in force. document is the manifest that was applied
// last.
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

// mark matches a line that begins or ends the block of an instance.
var mark = regexp.MustCompile(`^# (` + hostdir.Prefix + `(?:_[a-z0-9-]+)?): (what cluster |end$)`)

// block returns the block for a host's manifest, or "" if the host reaches no service.
func block(of hostdir.Instance, m document.Manifest) string {
	var lines []string
	for _, r := range m.Forwarder.Reach {
		d, err := spiffe.Dial(r.ID)
		if err != nil {
			continue
		}
		// hosts(5) has no wildcards; use SOCKS5 for them.
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

// cut returns the text before and after the block of an instance.
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
