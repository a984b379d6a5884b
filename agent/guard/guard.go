// Package guard maintains a table of nftables with rules that the forwarder cannot enforce itself.
// The rules keep other accounts of the host from bypassing the allow list by connecting to the
// upstream of a published service on loopback. They also record the sender of each datagram to a
// local UDP listener (package caller). The table follows the documents in force; other tables are
// not touched.
package guard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os/exec"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/agent/watch"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/journal"
)

// Config is which host is guarded.
type Config struct {
	Instance hostdir.Instance
	Layout   hostdir.Layout
	Account  string // the forwarder's
	Log      *slog.Logger
}

// poll is how often documents and accounts are read anyway, and the table is put back
// where something else has taken it out.
const poll = 10 * time.Second

// Run guards until ctx ends, and takes the table out then. What fails is logged, and
// tried again: nft may be installed later.
func Run(ctx context.Context, c Config) error {
	g := guard{Config: c}
	var failed journal.Once
	watch.Follow(ctx, c.Log, poll, func() []string {
		if err := g.apply(ctx); failed.News(err) {
			c.Log.Warn("not all is guarded", "error", err)
		}
		daemon.SdNotify(false, daemon.SdNotifyReady)
		return []string{c.Layout.Documents()}
	})
	return g.remove()
}

type guard struct {
	Config
	document document.Document
	applied  string // what the table is made from
}

// apply makes the table that of the documents in force.
func (g *guard) apply(ctx context.Context) error {
	doc, err := g.Layout.Refresh(g.document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no documents yet
	}
	if err != nil {
		return err
	}
	g.document = doc
	m := doc.Manifest()
	forwarder, err := caller.LookupUser(g.Account)
	if err != nil {
		return fmt.Errorf("the forwarder's account: %w", err)
	}
	rules, errs := ruleset(g.Instance.String(), forwarder, m.Forwarder)
	ctx = context.WithoutCancel(ctx) // one that is killed may have made the table all the same
	if rules != g.applied || !Guards(ctx, g.Instance) {
		if err := nft(ctx, rules, "-f", "-"); err != nil {
			return errors.Join(append(errs, err)...)
		}
		g.applied = rules
		g.Log.Info("guard is up to date", "published", len(m.Forwarder.Publish), "reachable", len(m.Forwarder.Reach))
	}
	return errors.Join(errs...)
}

func (g *guard) remove() error {
	if g.applied == "" {
		return nil
	}
	table := g.Instance.String()
	return nft(context.Background(), fmt.Sprintf("table inet %s\ndelete table inet %[1]s\n", table), "-f", "-")
}

// Guards reports whether the table of an instance is there, which root alone can see.
func Guards(ctx context.Context, m hostdir.Instance) bool {
	return nft(ctx, "", "list", "table", "inet", m.String()) == nil
}

func nft(ctx context.Context, input string, args ...string) error {
	cmd := exec.CommandContext(ctx, "nft", args...)
	cmd.Stdin = strings.NewReader(input)
	out, err := cmd.CombinedOutput()
	if err != nil {
		err = fmt.Errorf("nft %s: %w: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
	}
	return err
}
