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

// faultsPage is the reference page that explains every fault.
const faultsPage = "causes and cures: https://github.com/florete/florete/blob/main/docs/reference/faults.md"

func newValidateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate [FLAKE]",
		Short: "Check the cluster for errors and warnings",
		Long: `Check the flake of the cluster for errors and warnings. Run this command before you publish or
deploy, for example in CI. For each fault, it prints the place in the flake, the value found
there and the remedy. It changes nothing.

The command exits 1 if there is an error. With --strict, it also exits 1 if there is a warning.

FLAKE is the directory or the reference of a flake. The default is the current directory. If the
flake has several clusters, the command checks all of them unless --cluster names one. It also
checks that clusters which share a host do not conflict there.`,
	}
	strict := cmd.Flags().Bool("strict", false, "exit 1 also if there are only warnings")
	signed := cmd.Flags().String("signed", "", "compare the root certificates with those published last, which florctl publish records in this `FILE` beside the signing key (default: compare with the previous commit)")
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
		warned := false
		for _, r := range reports {
			err := r.Err(*strict)
			errs = append(errs, err)
			warnings := slices.DeleteFunc(slices.Clone(r.Faults), func(f compile.Fault) bool { return f.IsError() || *strict })
			for _, line := range compile.Lines(warnings) {
				fmt.Fprintln(cmd.ErrOrStderr(), line)
				warned = true
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "cluster %s: %d hosts, no faults\n", r.Cluster, r.Hosts)
			}
		}
		if err := errors.Join(errs...); err != nil {
			return fmt.Errorf("%w\n%s", err, faultsPage)
		}
		if warned {
			fmt.Fprintln(cmd.ErrOrStderr(), faultsPage)
		}
		return nil
	})
}

// printFaults prints the faults of all clusters as one list.
func printFaults(cmd *cobra.Command, reports []compile.Report, strict bool) error {
	type fault struct {
		Cluster string `json:"cluster,omitempty"` // if there are several clusters
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
