package upstream

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
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/journal"
)

// GuardConfig describes the host whose upstreams RunGuard protects.
type GuardConfig struct {
	Instance hostdir.Instance
	Layout   hostdir.Layout
	Account  string // Unix account of the forwarder
	Log      *slog.Logger
}

// guardPoll is the longest interval between two checks. Each check reads the documents and accounts
// again, and restores the table if it was removed.
const guardPoll = 10 * time.Second

// RunGuard keeps an nftables table that protects the upstreams of published services up to date
// with the documents in force until ctx ends, and then removes it. The forwarder cannot enforce
// these rules itself. Without them, another account of the host could bypass the allow list by
// connecting to an upstream on loopback. The rules also record the sender of each datagram to a
// local UDP listener, and package caller reads this record. Other tables are never changed.
//
// Errors are logged and retried, because nft may be installed later. RunGuard returns an error only
// if it cannot remove the table.
func RunGuard(ctx context.Context, c GuardConfig) error {
	g := guard{GuardConfig: c}
	var failed journal.Once
	hostdir.Follow(ctx, c.Log, guardPoll, func() []string {
		if err := g.apply(ctx); failed.News(err) {
			c.Log.Warn("not all is guarded", "error", err)
		}
		daemon.SdNotify(false, daemon.SdNotifyReady)
		return []string{c.Layout.Documents()}
	})
	return g.remove()
}

type guard struct {
	GuardConfig
	document document.Document
	applied  string // the ruleset that is in force
}

// apply updates the table so that it matches the documents in force.
func (g *guard) apply(ctx context.Context) error {
	doc, err := g.Layout.Refresh(g.document)
	if errors.Is(err, fs.ErrNotExist) {
		return nil // no documents are in force yet
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
	ctx = context.WithoutCancel(ctx) // otherwise nft could be killed after it has changed the table
	if rules != g.applied || !Guarded(ctx, g.Instance) {
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

// Guarded reports whether the nftables table of an instance exists. It returns false if the caller
// is not root, because only root can see the table.
func Guarded(ctx context.Context, m hostdir.Instance) bool {
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
