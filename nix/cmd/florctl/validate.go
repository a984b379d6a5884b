package main

import (
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/published"
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
	strict := cmd.Flags().Bool("strict", false, "take warnings for errors")
	signed := cmd.Flags().String("signed", "", "compare the roots with those that were published last, by this `FILE` that florctl publish keeps beside the key (default: with the commit before)")
	asJSON := cmd.Flags().Bool("json", false, "print the faults as a JSON list")
	return onSource(cmd, func(src compile.Source) error {
		reports, err := compile.Validate(cmd.Context(), src, time.Now())
		noteUnseen(cmd.Context(), src)
		if err == nil {
			err = published.CheckRootsKept(cmd.Context(), src, *signed)
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
	})
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
