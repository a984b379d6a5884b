package main

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"florete/nix/compile"
)

func newValidateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "validate [FLAKE]",
		Short: "Tell everything that is wrong with a cluster",
		Long: `Tell everything that is wrong with a cluster, each fault with its place, the
value found and the remedy. Exits 1 when there is any. FLAKE is a directory or
a flake reference, the current directory when not given.`,
	}
	from := source(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print the faults as a JSON list")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		src, err := from(args)
		if err != nil {
			return err
		}
		c, err := compile.Compile(cmd.Context(), src)
		if !*asJSON {
			if err == nil {
				fmt.Fprintf(cmd.OutOrStdout(), "cluster %s: %d hosts, no faults\n", c.Name, len(c.Documents))
			}
			return err
		}
		faults := []compile.Fault{}
		var found *compile.FaultsError
		if errors.As(err, &found) {
			faults = found.Faults
			err = fmt.Errorf("cluster %s: faults found: %d", found.Cluster, len(faults))
		} else if err != nil {
			return err
		}
		out := json.NewEncoder(cmd.OutOrStdout())
		out.SetIndent("", "  ")
		out.SetEscapeHTML(false)
		return errors.Join(out.Encode(faults), err)
	}
	return cmd
}
