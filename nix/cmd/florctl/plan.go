package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/plan"
)

// errWidens ends florctl with 2.
var errWidens = errors.New("access widens")

func newPlanCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan [FLAKE] [--from REV] [--to REV] | --placement",
		Short: "Say what a change of the cluster does, host by host",
		Long: `Say what changes between a revision and the working tree: which hosts and what
of their documents, which units restart, where services move, and who may do
what they might not before. An input of the flake that is locked to something else is
told, too, since hosts run what it has. Exits 2 when access widens, or when an input or a
fact changes, for review in CI, and 0 otherwise.`,
	}
	from := source(cmd)
	rev := cmd.Flags().String("from", "HEAD", "compare with this git `REV`, or with a flake reference")
	to := cmd.Flags().String("to", "", "compare this `REV` instead of the working tree")
	placement := cmd.Flags().Bool("placement", false, "only say where services run, and compare nothing")
	asJSON := cmd.Flags().Bool("json", false, "print the plan as JSON")
	cmd.MarkFlagsMutuallyExclusive("from", "placement")
	cmd.MarkFlagsMutuallyExclusive("to", "placement")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, err := from(args)
		if err != nil {
			return err
		}
		if *placement {
			return printPlacement(cmd, src, *asJSON)
		}
		now := src
		if *to != "" {
			if now, err = src.At(cmd.Context(), *to); err != nil {
				return err
			}
		}
		p, err := planSince(cmd.Context(), *rev, src, now)
		if err != nil {
			return err
		}
		if *to == "" {
			noteUnseen(cmd.Context(), src)
		}
		if *asJSON {
			err = terminal.PrintJSON(cmd.OutOrStdout(), p)
		} else {
			err = p.Text(cmd.OutOrStdout(), colours(os.Stdout))
		}
		if err == nil && p.Widens {
			err = errWidens
		}
		return err
	}
	return cmd
}

// planSince compares a cluster with what it was at a revision.
func planSince(ctx context.Context, rev string, src, now compile.Source) (p plan.Plan, err error) {
	old, err := src.At(ctx, rev)
	if err != nil {
		return p, err
	}
	done := progress("evaluating the cluster, then and now")
	var before, after compile.Snapshot
	work, ctx := errgroup.WithContext(ctx)
	work.Go(func() (err error) {
		before, err = snapshot(ctx, old)
		var none *compile.NoClusterError
		if errors.As(err, &none) {
			// The cluster is new in the flake, and so is everything in it.
			before = compile.Snapshot{Topology: compile.Topology{Name: src.Cluster}}
			before.Inputs, err = compile.ReadInputs(ctx, old)
		}
		if err != nil {
			err = fmt.Errorf("at %s: %w\ncompare with a commit that had no faults, such as --from %s~1", rev, err, rev)
		}
		return err
	})
	work.Go(func() (err error) {
		after, err = snapshot(ctx, now)
		return err
	})
	err = work.Wait()
	done()
	if err != nil {
		return p, err
	}
	return plan.Compare(before, after)
}

// snapshot returns the cluster and what the inputs of its flake are locked to.
func snapshot(ctx context.Context, src compile.Source) (s compile.Snapshot, err error) {
	if s, err = compile.Read(ctx, src); err == nil {
		s.Inputs, err = compile.ReadInputs(ctx, src)
	}
	return s, err
}

func printPlacement(cmd *cobra.Command, src compile.Source, asJSON bool) error {
	t, err := evaluated(cmd, src, compile.ReadTopology)
	if err != nil {
		return err
	}
	type placed struct {
		Service string   `json:"service"`
		Hosts   []string `json:"hosts"`
	}
	all := []placed{}
	for _, name := range slices.Sorted(maps.Keys(t.Services)) {
		all = append(all, placed{name, t.Services[name].Hosts})
	}
	if asJSON {
		return terminal.PrintJSON(cmd.OutOrStdout(), all)
	}
	for _, s := range all {
		fmt.Fprintf(cmd.OutOrStdout(), "service/%s: %s\n", s.Service, strings.Join(s.Hosts, ", "))
	}
	return nil
}

// colours tells whether f is a terminal whose user wants them (no-color.org).
func colours(f *os.File) bool {
	fi, err := f.Stat()
	return err == nil && fi.Mode()&os.ModeCharDevice != 0 && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}
