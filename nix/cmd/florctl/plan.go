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
		Short: "Show what a change does to the cluster, host by host",
		Long: `Show what a change of the flake does to the cluster, before you publish or deploy it. The
command compares an earlier revision of the flake (--from) with the working tree, and prints:

  - the documents of each host that change
  - the systemd units that restart
  - the services that move to another host
  - who gains or loses access
  - the inputs of the flake that are locked to something else

The command changes nothing. So that CI can require a review, it exits 2 in these cases, and 0
otherwise:

  - the change gives somebody more access
  - an input of the flake changes
  - a fact that is recorded in the flake changes`,
	}
	rev := cmd.Flags().String("from", "HEAD", "compare with this `REV`, a git revision or the reference of a flake")
	to := cmd.Flags().String("to", "", "compare this git revision `REV` instead of the working tree")
	placement := cmd.Flags().Bool("placement", false, "print on which host each service runs, and compare nothing")
	show := terminal.Shown(cmd, "print the plan as a JSON object, or the hosts of services as a JSON list (--placement)")
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
func showPlan(show terminal.Show, p plan.Plan) error {
	err := show(p, func(w io.Writer) error { return p.Text(w, terminal.Colours(os.Stdout)) })
	if err == nil && p.Widens {
		err = errWidens
	}
	return err
}
