package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
)

func newValidateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate [FLAKE]",
		Short: "Tell everything that is wrong with a cluster",
		Long: `Tell everything that is wrong with a cluster, each fault with its place, the
value found and the remedy. Exits 1 when there is any but warnings; with --strict, for CI, when
there is any. FLAKE is a directory or a flake reference, the current directory when not given.
Of several clusters, all are validated unless one is named, and compared where they have a
host in common.`,
	}
	from := source(cmd)
	strict := cmd.Flags().Bool("strict", false, "take warnings for errors")
	signed := cmd.Flags().String("signed", "", "compare the roots with those that were published last, by this `FILE` that florctl publish keeps beside the key (default: with the commit before)")
	asJSON := cmd.Flags().Bool("json", false, "print the faults as a JSON list")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, err := from(args)
		if err != nil {
			return err
		}
		reports, err := compile.Validate(cmd.Context(), src, time.Now())
		noteUnseen(cmd.Context(), src)
		if err == nil {
			err = rootsKept(cmd.Context(), src, *signed)
		}
		if err != nil {
			return err
		}
		if *asJSON {
			return printFaults(cmd, reports, *strict)
		}
		var errs []error
		for _, r := range reports {
			err := r.Err(*strict)
			errs = append(errs, err)
			warnings := slices.DeleteFunc(slices.Clone(r.Faults), func(f compile.Fault) bool { return f.IsError() || *strict })
			for _, line := range compile.Lines(warnings) {
				fmt.Fprintln(cmd.ErrOrStderr(), line)
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "cluster %s: %d hosts, no faults\n", r.Cluster, r.Hosts)
			}
		}
		return errors.Join(errs...)
	}
	return cmd
}

// printFaults prints those of all clusters as one list.
func printFaults(cmd *cobra.Command, reports []compile.Report, strict bool) error {
	type fault struct {
		Cluster string `json:"cluster,omitempty"` // of several
		compile.Fault
	}
	faults := []fault{}
	var errs []error
	for _, r := range reports {
		for _, f := range r.Faults {
			one := fault{Fault: f}
			if len(reports) > 1 {
				one.Cluster = r.Cluster
			}
			faults = append(faults, one)
		}
		if r.Err(strict) != nil {
			errs = append(errs, fmt.Errorf("cluster %s: faults found: %d", r.Cluster, len(r.Faults)))
		}
	}
	return errors.Join(append([]error{terminal.PrintJSON(cmd.OutOrStdout(), faults)}, errs...)...)
}

// rootsKept returns an error where a cluster has none of the roots that were published last, by the record
// of the signing key. Without a record those are the roots of the last commit, or of the one before it where
// nothing is uncommitted. What cannot be compared, as where the flake is in no clone or has several clusters,
// has no error.
func rootsKept(ctx context.Context, src compile.Source, signed string) error {
	is, err := compile.ReadTopology(ctx, src)
	if err != nil {
		if signed != "" {
			return fmt.Errorf("--signed: %w", err)
		}
		return nil
	}
	if signed != "" {
		if _, err := os.Stat(signed); err != nil {
			return fmt.Errorf("--signed: %w", err)
		}
		r, err := openRecord("", signed, is.Name)
		if err == nil {
			err = compile.CheckFingerprintsKept(r.roots(), compile.Fingerprints(is.Trust.Roots))
		}
		if err != nil {
			return fmt.Errorf("cluster %s: %w", is.Name, err)
		}
		return nil
	}
	tree, err := compile.ReadTree(ctx, src)
	if err != nil {
		return nil
	}
	revs := []string{"HEAD"}
	if tree.Revision != "" {
		revs = []string{"HEAD~", "HEAD~2"} // the last commit may take back the one before
	}
	var lost error
	for _, rev := range revs {
		before, err := src.At(ctx, rev)
		if err != nil {
			break
		}
		was, err := compile.ReadTopology(ctx, before)
		if err != nil {
			break
		}
		if lost = compile.CheckRootsKept(was.Trust.Roots, is.Trust.Roots); lost == nil {
			return nil
		}
	}
	if lost != nil {
		return fmt.Errorf("cluster %s: %w", is.Name, lost)
	}
	return nil
}
