package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/nix/operator/authority"
	"github.com/florete/florete/nix/operator/fleet"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/agefile"
	"github.com/florete/florete/providers/ca"
)

// rotating adds the flags of the commands that rotate the certificate authority. The function it
// returns examines the rotation of the cluster that the arguments name.
func rotating(cmd *cobra.Command) (dir *string, examine func(args []string) (*authority.Rotation, error)) {
	cluster := ofCluster(cmd)
	dir = cmd.Flags().String("dir", ".", "`DIR` of ca.crt")
	without := cmd.Flags().StringArray("without", nil, "do not wait for this `HOST`, which is gone or will be deployed by hand; may be repeated")
	return dir, func(args []string) (*authority.Rotation, error) {
		return authority.Examine(cmd.Context(), ca.Dir(*dir), func() (published.Cluster, error) { return cluster(args) }, *without)
	}
}

func newCAStatusCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [FLAKE] --dir DIR",
		Short: "Print the roots of the cluster and the state of a rotation",
		Long: `Print the roots in the flake and in the directory of the root. For each root, print how many hosts
trust it and how many have certificates that lead to it, as hosts last reported. During a rotation,
also print the hosts that its next step waits for. Exits 2 when it waits for a host, and 0
otherwise. Nothing is changed.`,
	}
	_, examine := rotating(cmd)
	show := shown(cmd, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := examine(args)
		if err != nil {
			return err
		}
		err = show(r.JSON(), func(io.Writer) error { return r.Print() })
		if err == nil && !r.Ready() {
			err = fleet.ErrAttention
		}
		return err
	}
	return cmd
}

func newCARotateCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "rotate [FLAKE] --dir DIR",
		Short: "Take the next step of replacing the root",
		Long: `Take the next step of replacing the root of the cluster, if all hosts are ready for it:

  1. prepare   Create next.crt and next.key beside ca.crt and ca.key. Then add next.crt to
               trust.roots, under the name that is printed, and publish.
  2. activate  When every host reports that it trusts the new root, rename next.* to ca.* and
               the former ca.* to old.*. Then sign the issuing certificates with florctl ca sign.
  3. retire    When no certificate of a host leads to the former root, remove it from
               trust.roots and publish. When no host trusts it, old.* are removed.

If a host is not ready, florctl names it, changes nothing and exits 2. A rotation that was
interrupted continues with the same command; florctl ca status shows its state.

With --watch, florctl takes all steps, each as soon as the hosts are ready, signs the issuing
certificates as root@HOST over SSH, and tells you, twice, when to edit the flake and publish. Hosts
receive the roots with their documents, and renew their certificates themselves.`,
		Example: `  florctl ca rotate ~/demo --dir ~/demo-ca --watch
  florctl ca rotate ~/demo --dir ~/demo-ca --watch --without laptop`,
	}
	dir, examine := rotating(cmd)
	how := authority.RootKeyFlags(cmd)
	watch := cmd.Flags().Bool("watch", false, "take all steps, and wait until the hosts are ready for each")
	open := agefile.Opening(cmd, "ca-", "the sealed root key, for --watch")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		r, err := examine(args)
		if err != nil {
			return err
		}
		if err := secretfile.RefuseTree(ca.Dir(*dir).Path("ca.key")); err != nil {
			return err
		}
		switch {
		case *watch:
			return r.Watch(cmd.Context(), func() (*authority.Rotation, error) { return examine(args) }, how, open)
		case !r.Ready():
			return r.Print()
		}
		return r.Take(how)
	}
	return cmd
}
