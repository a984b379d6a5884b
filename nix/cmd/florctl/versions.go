package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/plan"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/archive"
)

func newVersionsCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "versions [FLAKE]", Short: "Print what was published, newest first"}
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		all, err := c.Versions(cmd.Context())
		switch {
		case err != nil:
			return err
		case *asJSON:
			return terminal.PrintJSON(cmd.OutOrStdout(), all)
		}
		return archive.Print(cmd.OutOrStdout(), all)
	})
}

func newDiffCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff SERIAL SERIAL [FLAKE]",
		Short: "Print what changed from one published version to another, host by host",
		Long: `Print what florctl plan prints, of two versions that were published: florctl versions
has them. Where services run, and which of them strangers reach, is in no document:
florctl plan has it, of two revisions. Exits 2 when access widens, and 0 otherwise.`,
	}
	cluster := ofCluster(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print the differences as JSON")
	cmd.Args = words(2, 3)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var serials [2]int64
		var err error
		for i := range serials {
			if serials[i], err = parseSerial(args[i]); err != nil {
				return err
			}
		}
		c, err := cluster(args[2:])
		if err != nil {
			return err
		}
		var sides [2]compile.Snapshot
		for i, serial := range serials {
			if sides[i], err = c.Snapshot(cmd.Context(), serial); err != nil {
				return err
			}
		}
		found, err := plan.Compare(sides[0], sides[1])
		switch {
		case err != nil:
			return err
		case *asJSON:
			err = terminal.PrintJSON(cmd.OutOrStdout(), found)
		default:
			err = found.Text(cmd.OutOrStdout(), terminal.Colours(os.Stdout))
		}
		if err == nil && found.Widens {
			err = errWidens
		}
		return err
	}
	return cmd
}

func parseSerial(word string) (int64, error) {
	serial, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("serial %q, want one that florctl versions prints", word)
	}
	return serial, nil
}
