package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/nss"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/providers/store"
)

// joinCmd is what florctl token and florctl join do, before operators reach the control API.
func joinCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "join",
		Short: "Print and decide join requests, keep join tokens, and record identity files, as JSON",
		Long: `What florctl token, florctl join and florctl id run over SSH. They make tokens and signatures; what
they are about comes in on standard input, what came of it goes out as JSON. It may run
beside the provider.`,
	}
	add := func(use string, args int, do func(ctx context.Context, o *join.Operator, in []byte, args []string) (any, error)) {
		sub := t.withArchive(&cobra.Command{Use: use, Short: "See florctl token, florctl join and florctl id"}, func(cmd *cobra.Command, s *settings.Settings, a archive.Archive) error {
			in, err := io.ReadAll(io.LimitReader(cmd.InOrStdin(), 64<<10))
			if err != nil {
				return err
			}
			v, err := asAccount(cmd.Context(), s, a.Store, func(o *join.Operator) (any, error) { return do(cmd.Context(), o, in, cmd.Flags().Args()) })
			if err != nil {
				return err
			}
			return json.NewEncoder(cmd.OutOrStdout()).Encode(v)
		})
		sub.Args = cobra.ExactArgs(args)
		cmd.AddCommand(sub)
	}
	add("tokens", 0, func(ctx context.Context, o *join.Operator, _ []byte, _ []string) (any, error) {
		return join.Tokens(ctx, o.Store)
	})
	add("create-token", 0, func(ctx context.Context, o *join.Operator, in []byte, _ []string) (any, error) {
		var t join.Token
		if err := strictjson.Decode(in, &t); err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return o.Create(ctx, t)
	})
	add("revoke-token ID", 1, func(ctx context.Context, o *join.Operator, _ []byte, args []string) (any, error) {
		return o.Revoke(ctx, args[0])
	})
	add("list", 0, func(ctx context.Context, o *join.Operator, _ []byte, _ []string) (any, error) {
		list, err := archive.Archive{Store: o.Store}.Revocations(ctx)
		if err != nil {
			return nil, err
		}
		var open *trust.Revocations
		if list.Number > 0 {
			if open, err = list.Signed.Open(); err != nil {
				return nil, err
			}
		}
		return join.Requests(ctx, o.Store, o.Policy, open)
	})
	add("decide HOST", 1, func(ctx context.Context, o *join.Operator, in []byte, args []string) (any, error) {
		var d control.Decision
		if err := strictjson.Decode(in, &d); err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return o.Decide(ctx, args[0], d.Admission)
	})
	add("issued", 0, func(ctx context.Context, o *join.Operator, in []byte, _ []string) (any, error) {
		var i join.Issued
		if err := strictjson.Decode(in, &i); err != nil {
			return nil, fmt.Errorf("standard input: %w", err)
		}
		return o.Issued(ctx, i)
	})
	return cmd
}

// asAccount acts as the account that runs this, until nothing changes in between.
func asAccount(ctx context.Context, s *settings.Settings, st store.Store, do func(*join.Operator) (any, error)) (any, error) {
	policy, err := readPolicy(s)
	if err != nil {
		return nil, err
	}
	by, err := nss.Current()
	if err != nil {
		return nil, err
	}
	for ctx.Err() == nil {
		o := join.Operator{Store: st, Policy: policy, Row: server.Row{Time: time.Now().UTC(), Caller: "the account " + by.Username + " of this host", Kind: control.Kind}}
		if v, err := do(&o); !errors.Is(err, store.ErrConflict) {
			return v, err
		}
	}
	return nil, ctx.Err()
}
