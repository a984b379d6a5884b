package main

import (
	"errors"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/plan"
)

// errWidens makes florctl exit with status 2.
var errWidens = errors.New("access widens")

func newPlanCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "plan [FLAKE] [--from REV] [--to REV] | --placement",
		Short: "Show the effect of a change, host by host",
		Long: `Compare a revision of the flake with the working tree, and print what a deployment would change:
the documents of each host, units that restart, services that move, and who gains or loses access.
Inputs of the flake that are locked to something else are named too. Nothing is changed.

Exits 2 when access widens, or when an input or a recorded fact changes, so that CI can require a
review; exits 0 otherwise.`,
	}
	rev := cmd.Flags().String("from", "HEAD", "compare with this git `REV` or flake reference")
	to := cmd.Flags().String("to", "", "compare this git `REV` instead of the working tree")
	placement := cmd.Flags().Bool("placement", false, "print where services run, and compare nothing")
	show := shown(cmd, "print the plan as JSON")
	cmd.MarkFlagsMutuallyExclusive("from", "placement")
	cmd.MarkFlagsMutuallyExclusive("to", "placement")
	return onSource(cmd, func(src compile.Source) error {
		if *placement {
			t, err := evaluated(cmd, src, compile.ReadTopology)
			if err != nil {
				return err
			}
			all := plan.PlacementOf(t)
			return show(all, all.Text)
		}
		var err error
		now := src
		if *to != "" {
			if now, err = src.At(cmd.Context(), *to); err != nil {
				return err
			}
		}
		done := terminal.Progress("evaluating the cluster, then and now")
		p, err := plan.Since(cmd.Context(), *rev, src, now)
		done()
		if *to == "" { // also before a fault, which a forgotten file may be the reason for
			noteUnseen(cmd.Context(), src)
		}
		if err != nil {
			return err
		}
		return showPlan(show, p)
	})
}

// showPlan prints a plan, and returns errWidens if the plan widens access.
func showPlan(show showing, p plan.Plan) error {
	err := show(p, func(w io.Writer) error { return p.Text(w, terminal.Colours(os.Stdout)) })
	if err == nil && p.Widens {
		err = errWidens
	}
	return err
}
