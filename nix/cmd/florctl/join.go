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
	cmd := &cobra.Command{Use: "join", Short: "Admit devices that ask to become hosts"}
	cmd.AddCommand(newJoinListCmd(), newJoinApproveCmd(), newJoinRejectCmd())
	return cmd
}

func newJoinListCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "list [FLAKE]", Short: "Print the devices that ask to become hosts", Long: `Print the devices that have asked to become hosts of the cluster, and the decision about each. A
device asks when somebody runs flor join on it. To admit a device, run florctl join approve. To
refuse it, run florctl join reject.`}
	show := shown(cmd, "print the requests of devices as a JSON list")
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
		Short: "Admit the device that asks to become a host",
		Long: `Admit the device that has asked, with flor join, to become the host HOST of the cluster. The
command signs a statement that the key of the device belongs to HOST, and sends it to the config
providers. The device gets its certificate within seconds. Providers cannot admit a device
without this signature.

Make sure that it is the right device. flor join prints a fingerprint on the device. Pass this
fingerprint with --device, or compare it with the fingerprint that florctl prints, and confirm.

If trust.threshold in the topology is above one, another operator first runs the same command
with --sign-only FILE, and you add --with FILE. To take an admission back, run florctl revoke
--host-key.`,
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
		Short: "Refuse the device that asks to become a host",
		Long: `Refuse the device that has asked, with flor join, to become the host HOST of the cluster. The
device may ask again with another join token. A device that you approved before cannot be
rejected: revoke its key with florctl revoke --host-key.`,
	}
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error { return c.Reject(cmd.Context(), args[0]) })
}
