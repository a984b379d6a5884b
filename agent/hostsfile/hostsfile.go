// Package hostsfile writes the names of the cluster's services into hosts(5), so that ordinary
// programs can connect to a service by its name. Each name gets the address of its local listener:
//
//	# florete: what cluster demo offers this host; kept by florete-hosts-file.service
//	127.103.91.74 auth.demo.flor.rete
//	127.103.91.74 login.demo.flor.rete
//	# florete: end
//
// The block is updated when the documents in force change. It is restored if another program
// rewrites the file. Between the two marks, the package owns all lines with loopback addresses of
// names in .rete. It changes no other line, even if the marks are damaged. Each instance of the
// host has its own block, "# florete_<instance>: …".
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

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/spiffe"
)

// Config describes the host whose names Run and Remove maintain, and the hosts(5) file that they
// change.
type Config struct {
	Instance hostdir.Instance
	Layout   hostdir.Layout
	Hosts    string // path of hosts(5), usually DefaultHosts
	Log      *slog.Logger
}

// DefaultHosts is the usual path of hosts(5).
const DefaultHosts = "/etc/hosts"

// poll is the longest interval at which the documents and hosts(5) are read again.
const poll = 10 * time.Second

// Run keeps the names of the services that this host can reach in the hosts(5) file, until ctx
// ends. Errors are logged and retried.
func Run(ctx context.Context, c Config) error {
	var failed journal.Once
	var document document.Document
	hostdir.Follow(ctx, c.Log, poll, func() []string {
		err := c.apply(&document)
		if errors.Is(err, fs.ErrNotExist) {
			err = nil // no documents are in force yet
		}
		if failed.News(err) {
			c.Log.Warn("names are not kept", "error", err)
		}
		if err != nil {
			// The package's own change of the directory must not start another pass.
			select {
			case <-ctx.Done():
			case <-time.After(poll):
			}
		}
		return []string{filepath.Dir(c.Hosts), c.Layout.Documents()}
	})
	return nil
}

// apply updates the block to match the manifest in force. The argument document points to the
// manifest that was applied last, so that an unchanged manifest is not decoded again.
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

// mark matches the first or the last line of an instance's block.
var mark = regexp.MustCompile(`^# (` + hostdir.Prefix + `(?:_[a-z0-9-]+)?): (what cluster |end$)`)

// block returns the block for a manifest. It returns "" if the host reaches no service.
func block(of hostdir.Instance, m document.Manifest) string {
	var lines []string
	for _, r := range m.Forwarder.Reach {
		d, err := spiffe.Dial(r.ID)
		if err != nil {
			continue
		}
		// hosts(5) has no wildcards. Programs reach such names through SOCKS5.
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

// cut splits the text of hosts(5) at the block of an instance. It returns the text before and after
// the block.
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
