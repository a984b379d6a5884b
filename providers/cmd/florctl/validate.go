package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"florete/nix/compile"
)

func newValidateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate [FLAKE]",
		Short: "Tell everything that is wrong with a cluster",
		Long: `Tell everything that is wrong with a cluster, each fault with its place, the
value found and the remedy. Exits 1 when there is any but warnings. FLAKE is a directory or
a flake reference, the current directory when not given.`,
	}
	from := source(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print the faults as a JSON list")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, err := from(args)
		if err != nil {
			return err
		}
		r, err := compile.Validate(cmd.Context(), src, time.Now())
		if err != nil {
			return err
		}
		noteUnseen(cmd.Context(), src)
		err = r.Err()
		if !*asJSON {
			for _, f := range r.Faults {
				if !f.IsError() {
					fmt.Fprintln(cmd.ErrOrStderr(), f)
				}
			}
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "cluster %s: %d hosts, no faults\n", r.Cluster, r.Hosts)
			}
			return err
		}
		if err != nil {
			err = fmt.Errorf("cluster %s: faults found: %d", r.Cluster, len(r.Faults))
		}
		faults := r.Faults
		if faults == nil {
			faults = []compile.Fault{}
		}
		out := json.NewEncoder(cmd.OutOrStdout())
		out.SetIndent("", "  ")
		out.SetEscapeHTML(false)
		return errors.Join(out.Encode(faults), err)
	}
	return cmd
}
