package main

import (
	"io"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/authority"
	"github.com/florete/florete/nix/operator/fleet"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/ca"
)

// rotating adds the flags of the commands that rotate the certificate authority. The function it
// returns examines the rotation of the cluster that the arguments name.
func rotating(cmd *cobra.Command) (dir *string, examine func(args []string) (*authority.Rotation, error)) {
	cluster := ofCluster(cmd)
	dir = cmd.Flags().String("dir", ".", "`DIR` that contains ca.crt")
	without := cmd.Flags().StringArray("without", nil, "do not wait for this `HOST`, because it is gone or will be deployed by hand; may be repeated")
	return dir, func(args []string) (*authority.Rotation, error) {
		return authority.Examine(cmd.Context(), ca.Dir(*dir), func() (published.Cluster, error) { return cluster(args) }, *without)
	}
}

func newCAStatusCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "status [FLAKE] --dir DIR",
		Short: "Print the root certificates and the state of a rotation",
		Long: `Print the root certificates of the cluster, and the progress of their replacement. For each root
in the flake and in --dir, the command prints how many hosts trust it, and how many hosts have
certificates from it. These numbers come from the last reports of the hosts.

The command changes nothing. During a replacement, it prints the hosts that the next step waits
for, and exits 2 if there are any. Otherwise it exits 0.`,
	}
	_, examine := rotating(cmd)
	show := terminal.Shown(cmd, "print a JSON object with the stage of the rotation, the root certificates, and the hosts that delay the next step")
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
		Short: "Replace the root of the cluster, step by step",
		Long: `Replace the root certificate and the root key of the cluster, step by step. Each run of the
command takes the next step, if all hosts are ready for it:

  1. prepare   Create next.crt and next.key beside ca.crt and ca.key. Then add next.crt to
               trust.roots, under the name that is printed, and publish.
  2. activate  When every host reports that it trusts the new root, rename next.* to ca.* and
               the old ca.* to old.*. Then sign the issuing certificates with florctl ca sign.
  3. retire    When no certificate of a host leads to the old root, remove the old root from
               trust.roots and publish. When no host trusts the old root, old.* are removed.

If a host is not ready, the command prints the host, changes nothing and exits 2. After an
interruption, run the command again. To see the progress, run florctl ca status.

With --watch, the command takes all steps, each as soon as all hosts are ready. It signs the
issuing certificates over SSH as root@HOST. It stops twice and asks you to edit the flake and
publish.`,
		Example: `  # Replace the root of the flake in ~/demo, with all steps.
  florctl ca rotate ~/demo --dir ~/demo-ca --watch
  # Do the same without waiting for the host laptop.
  florctl ca rotate ~/demo --dir ~/demo-ca --watch --without laptop`,
	}
	dir, examine := rotating(cmd)
	how := authority.RootKeyFlags(cmd)
	watch := cmd.Flags().Bool("watch", false, "take all steps, and wait before each step until the hosts are ready")
	open := agefile.Opening(cmd, "ca-", "the root key, if the key is encrypted, for --watch")
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
