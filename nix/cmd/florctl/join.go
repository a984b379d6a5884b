package main

import (
	"cmp"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/join"
)

func newJoinCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "join", Short: "Admit devices as hosts, and manage join tokens"}
	cmd.AddCommand(newJoinListCmd(), newJoinApproveCmd(), newJoinRejectCmd(), newTokenCmd())
	return cmd
}

func newJoinListCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "list [FLAKE]", Short: "Print the devices that ask to become hosts", Long: `Print the devices that have asked to become hosts of the cluster, with the decision about each
device. A device asks when somebody runs flor join on it. To admit a device, run florctl join
approve. To refuse it, run florctl join reject.`}
	show := terminal.Shown(cmd, "print the requests of devices as a JSON list")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		all, err := client.Each(c.Providers, func(at *client.Provider) ([]join.Request, error) { return at.Joins(cmd.Context()) },
			func(r join.Request) string { return r.Host + r.Device + r.Requested.String() })
		if err != nil {
			return err
		}
		type row struct {
			join.Request
			Fingerprint string `json:"fingerprint"`
		}
		rows := []row{}
		for _, r := range all {
			rows = append(rows, row{r, r.Fingerprint()})
		}
		return show(rows, func(w io.Writer) error {
			t := terminal.NewTable(w, "HOST", "STATE", "DEVICE", "KEY IN", "FROM", "REQUESTED", "SYSTEM", "DECIDED BY")
			for _, r := range rows {
				t.Row(r.Host, r.State, r.Fingerprint, cmp.Or(r.Facts.DeviceKey, hostdir.InFile), r.From, r.Requested.UTC().Format(time.RFC3339), r.Facts.System, r.By)
			}
			return t.Flush()
		})
	})
}

func newJoinApproveCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approve HOST [FLAKE] --key FILE",
		Short: "Admit a device that asks to become a host",
		Long: `Admit a device as a host of the cluster, after somebody ran flor join on the device. The command
signs a statement that the key of the device belongs to HOST, and sends it to the config
providers. The device gets its certificate within seconds.

Make sure that you admit the right device. flor join prints a fingerprint on the device. Pass
this fingerprint with --device, or compare it with the fingerprint that florctl prints.

To take the admission back, run florctl revoke --host-key.

If trust.threshold in the topology is above one, another operator first runs the same command
with --sign-only FILE. Then run the command with --with FILE.`,
		Example: "  florctl join approve elm --key ~/demo-ca/signing.key --device SHA256:…",
	}
	sign := together(cmd)
	cmd.Flags().Lookup("signed").Hidden = true // admissions are not recorded
	device := cmd.Flags().String("device", "", "approve the device without asking, if it has this `FINGERPRINT`, SHA256:…")
	cmd.MarkFlagRequired("key")
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error {
		key, err := sign()
		if err != nil {
			return err
		}
		return signedOnly(c.Approve(cmd.Context(), args[0], *device, key))
	})
}

func newJoinRejectCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "reject HOST [FLAKE]",
		Short: "Refuse a device that asks to become a host",
		Long: `Refuse to admit a device as a host of the cluster, after somebody ran flor join on the device.
The device may ask again with another join token. You cannot reject a device that was already
approved. Instead, revoke its key with florctl revoke --host-key.`,
	}
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error { return c.Reject(cmd.Context(), args[0]) })
}
