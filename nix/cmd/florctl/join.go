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
	cmd := &cobra.Command{Use: "join", Short: "Admit devices that request to be hosts"}
	cmd.AddCommand(newJoinListCmd(), newJoinApproveCmd(), newJoinRejectCmd())
	return cmd
}

func newJoinListCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "list [FLAKE]", Short: "Print the join requests of devices", Long: `Print the devices that requested to be hosts with flor join, and the decision about each.`}
	show := shown(cmd, "print JSON")
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
		Short: "Admit the device that requests to be a host",
		Long: `Sign that a device which requests to be a host is that host. The device enrols within seconds.
flor join prints its fingerprint: pass it with --device, or compare it with the fingerprint that
florctl prints, and confirm. No provider can admit a device without this signature. Where
trust.threshold is above one, another operator first runs this command with --sign-only FILE. To
take an admission back, run florctl revoke --host-key.`,
		Example: "  florctl join approve elm --key ~/demo-ca/signing.key --device SHA256:…",
	}
	sign := together(cmd)
	cmd.Flags().Lookup("signed").Hidden = true // admissions are not recorded
	device := cmd.Flags().String("device", "", "approve the device with this `FINGERPRINT`, SHA256:…, without asking")
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
		Short: "Refuse the device that requests to be a host",
		Long: `Refuse the device that requests to be a host. It may request again with another token. A device
that was approved before must be revoked instead, with florctl revoke --host-key.`,
	}
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error { return c.Reject(cmd.Context(), args[0]) })
}
