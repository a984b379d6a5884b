package main

import (
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/plan"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/archive"
)

func newVersionsCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "versions [FLAKE]", Short: "Print the published versions", Long: `Print the published versions of the documents, newest first. Use this command to find the serial
number of a version for florctl diff and florctl rollback.`}
	show := terminal.Shown(cmd, "print the versions as a JSON list")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		all, err := c.Versions(cmd.Context())
		if err != nil {
			return err
		}
		return show(all, func(w io.Writer) error { return archive.Print(w, all) })
	})
}

func newDiffCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff SERIAL SERIAL [FLAKE]",
		Short: "Compare two published versions",
		Long: `Compare two published versions of the documents, host by host. SERIAL is a number that florctl
versions prints. The output has the same form as the output of florctl plan, but lacks
placements and public services, because documents do not contain them.

The command changes nothing. It exits 2 if the second version gives somebody more access, and 0
otherwise.`,
	}
	cluster := ofCluster(cmd)
	show := terminal.Shown(cmd, "print the differences as a JSON object")
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
		if err != nil {
			return err
		}
		return showPlan(show, found)
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
