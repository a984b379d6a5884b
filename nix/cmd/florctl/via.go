package main

import (
	"context"
	"fmt"
	"io"
	"iter"
	"os"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/advance"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/auditlog"
	"github.com/florete/florete/providers/config"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
)

// provider is a config provider, however it is reached.
type provider interface {
	// Versions are those that it keeps, newest first.
	Versions(ctx context.Context) ([]archive.Version, error)

	// Export writes the documents of a version, for a publish.Reader.
	Export(ctx context.Context, serial int64, w io.Writer) error

	// Import has it serve documents, as publish.Encode writes them, and returns what it
	// reports of that.
	Import(ctx context.Context, r io.Reader, how importing) (string, error)

	// Rollout is how the one at work stands, or the last, once an act is done; empty for none.
	Rollout(ctx context.Context, act advance.Act) (advance.Status, error)

	// Reports are the last ones of hosts, by name.
	Reports(ctx context.Context) (map[string]hostreport.Kept, error)

	// Audit are the rows of what it decided after a time, oldest first.
	Audit(ctx context.Context, since auditlog.Moment) iter.Seq2[auditlog.Row, error]

	// Revocations is the revocation list that it offers hosts, and SetRevocations has it offer
	// another.
	Revocations(ctx context.Context) (archive.Revocations, error)
	SetRevocations(ctx context.Context, s trust.SignedRevocations) error

	// Tokens are the join tokens on record; CreateToken records one, and RevokeToken ends it.
	Tokens(ctx context.Context) ([]join.Token, error)
	CreateToken(ctx context.Context, t join.Token) (join.Token, error)
	RevokeToken(ctx context.Context, id string) (join.Token, error)

	// Joins are the last join requests of hosts, and DecideJoin approves or rejects one.
	Joins(ctx context.Context) ([]join.Request, error)
	DecideJoin(ctx context.Context, host string, d control.Decision) (join.Request, error)

	// Issued records certificates of an identity file in its audit log.
	Issued(ctx context.Context, i join.Issued) error

	// Host is its name.
	Host() string

	// Rotate has a host request another secret for a need, and returns when it does.
	Rotate(ctx context.Context, host, need string) (string, error)
}

// importing is what documents are for.
type importing struct {
	back   int64 // they are those of the version with this serial; zero for none
	atOnce bool  // all hosts are offered them, whatever waves there are
}

// via adds the flag for how config providers are reached. The function it returns gives those of a
// cluster. What the command prints may be their words, so nothing of it steers a terminal.
func via(cmd *cobra.Command) func(compile.Topology) ([]provider, error) {
	cmd.SetOut(terminal.Writer(os.Stdout))
	cmd.SetErr(terminal.Writer(os.Stderr))
	how := cmd.Flags().String("via", "forwarder", "reach the cluster's config providers by this host's `forwarder`, or, before there is one, by ssh as root@HOST")
	return func(t compile.Topology) (all []provider, err error) {
		for _, host := range t.Providers[config.Name].Hosts {
			switch *how {
			case "forwarder":
				p, err := newOverForwarder(t, host)
				if err != nil {
					return nil, err
				}
				all = append(all, p)
			case "ssh":
				all = append(all, overSSH{host, t})
			default:
				return nil, fmt.Errorf("--via %q, want forwarder or ssh", *how)
			}
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("cluster %s: no host provides documents: name one in providers.config.hosts", t.Name)
		}
		return all, nil
	}
}
