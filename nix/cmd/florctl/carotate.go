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

// rotating adds the flags. The function it returns examines the cluster of the arguments.
func rotating(cmd *cobra.Command) (dir *string, examine func(args []string) (*authority.Rotation, error)) {
	cluster := ofCluster(cmd)
	dir = cmd.Flags().String("dir", ".", "`DIR`ectory of the root, with ca.crt")
	without := cmd.Flags().StringArray("without", nil, "a `HOST` that is gone for good, or is deployed by hand when it is back; several times")
	return dir, func(args []string) (*authority.Rotation, error) {
		return authority.Examine(cmd.Context(), ca.Dir(*dir), func() (published.Cluster, error) { return cluster(args) }, *without)
	}
}

func newCAStatusCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [FLAKE] --dir DIR",
		Short: "Print the roots of the cluster, and how a rotation stands",
		Long: `Print the roots that the flake lists and those of the root's directory, how many hosts
trust each and have certificates that lead to it, by their last reports, and which hosts the
next step of a rotation waits for. Exits 2 where one waits, and 0 otherwise.`,
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
		Short: "Take the next step of replacing the cluster's root",
		Long: `Take the next step of replacing the cluster's root, if everything is ready for it:

  1. prepare   next.crt and next.key are made beside ca.crt and ca.key. List next.crt in
               trust.roots too, under the name that is printed, and publish.
  2. activate  once every host reports that it trusts it, wherever it verifies, next.* become
               ca.*, and those old.*. Sign the issuing certificates with florctl ca sign.
  3. retire    once no certificate of any host leads to the former root, remove it from
               trust.roots and publish; once no host trusts it, old.* are removed.

Where a host is not ready it is named, nothing is done, and florctl exits 2. The files of the
directory, trust.roots and the reports of hosts are all there is of a rotation: run it again
whenever it was interrupted, florctl ca status shows how it stands.

With --watch it takes all steps, each as soon as everything is ready for it, signs the issuing
certificates as root@HOST over SSH, and says when the flake is to be edited and published: twice.
Hosts get the roots with their documents, and renew their certificates by themselves.`,
		Example: `  florctl ca rotate ~/demo --dir ~/demo-ca --watch
  florctl ca rotate ~/demo --dir ~/demo-ca --watch --without laptop`,
	}
	dir, examine := rotating(cmd)
	how := authority.RootKeyFlags(cmd)
	watch := cmd.Flags().Bool("watch", false, "take all steps, and wait for what each needs")
	open := agefile.Opening(cmd, "ca-", "the root's key, where it is sealed, for --watch")
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
