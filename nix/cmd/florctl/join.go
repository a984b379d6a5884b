package main

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"
	sshkey "golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
)

func newJoinCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "join", Short: "Decide on devices that request to be hosts"}
	cmd.AddCommand(newJoinListCmd(), newJoinApproveCmd(), newJoinRejectCmd())
	return cmd
}

func newJoinListCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "list [FLAKE]", Short: "Print the join requests of hosts, and how they stand"}
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		all, err := client.Each(c.Providers, func(at *client.Provider) ([]join.Request, error) { return at.Joins(cmd.Context()) },
			func(r join.Request) string { return r.Host + r.Device + r.Requested.String() })
		if err != nil {
			return err
		}
		if *asJSON {
			type row struct {
				join.Request
				Fingerprint string `json:"fingerprint"`
			}
			rows := []row{}
			for _, r := range all {
				rows = append(rows, row{r, r.Fingerprint()})
			}
			return terminal.PrintJSON(cmd.OutOrStdout(), rows)
		}
		w := terminal.NewTable(cmd.OutOrStdout(), "HOST", "STATE", "DEVICE", "KEY IN", "FROM", "REQUESTED", "SYSTEM", "DECIDED BY")
		for _, r := range all {
			w.Row(r.Host, r.State, r.Fingerprint(), cmp.Or(r.Facts.DeviceKey, hostdir.InFile), r.From, r.Requested.UTC().Format(time.RFC3339), r.Facts.System, r.By)
		}
		return w.Flush()
	})
}

func newJoinApproveCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "approve HOST [FLAKE] --key FILE",
		Short: "Admit the device that requests to be a host",
		Long: `Sign that the device which requests to be a host is that host. flor join prints its
fingerprint there: give it with --device, or compare it with the one that florctl computes of
the key and asks about. No provider can admit a device without that signature.`,
		Example: "  florctl join approve elm --key signing.key --device SHA256:…",
	}
	keyFile := cmd.Flags().String("key", "", "secret signing key `FILE`, in Nix format")
	device := cmd.Flags().String("device", "", "approve the device with this `FINGERPRINT`, SHA256:…, without a question")
	cmd.MarkFlagRequired("key")
	return deciding(cmd, func(p published.Cluster, r join.Request) (d control.Decision, err error) {
		if h, ok := p.Topology.Hosts[r.Host]; !ok || h.SSHHostKey != "" {
			return d, fmt.Errorf("no host %.64q of cluster %s joins: one with sshHostKey enrols by that", r.Host, p.Topology.Name)
		}
		// The key that is signed is compared, and nothing that came beside it.
		is, err := r.Key()
		if err != nil {
			return d, fmt.Errorf("%w: nothing is approved", err)
		}
		key, err := pinnedKey(p.Topology, *keyFile)
		if err != nil {
			return d, err
		}
		if err := confirmDevice(cmd, r.Host, sshkey.FingerprintSHA256(is), *device); err != nil {
			return d, err
		}
		text, sig, err := key.SignJSON(trust.NewAdmission(p.Topology.Name, p.Topology.Hosts[r.Host].ID, r.Device, time.Now()), trust.AdmissionText)
		return control.Decision{Admission: &trust.SignedAdmission{Admission: text, Signature: sig}}, err
	})
}

// confirmDevice compares a device's fingerprint with the one that the operator gives, or has
// the operator compare it.
func confirmDevice(cmd *cobra.Command, host, fingerprint, given string) error {
	switch {
	case given == fingerprint:
		return nil
	case given != "":
		return fmt.Errorf("device %s requests to be %s, not %s: nothing is approved", fingerprint, host, given)
	}
	return console(cmd).Confirm(fmt.Sprintf("Device %s requests to be %s. flor join prints its fingerprint there. Is it the same?", fingerprint, host),
		"nothing is approved: --device SHA256:…, as flor join prints it there, approves that device without a question")
}

func newJoinRejectCmd() *cobra.Command {
	return deciding(&cobra.Command{
		Use:   "reject HOST [FLAKE]",
		Short: "Refuse the device that requests to be a host",
		Long: `Refuse the device that requests to be a host. It may request again with another token. One
that was approved is revoked: florctl revoke --host-key.`,
	}, func(published.Cluster, join.Request) (control.Decision, error) { return control.Decision{}, nil })
}

// deciding is a command that decides on the request of a host, at the provider that has it: of
// several the one that waits.
func deciding(cmd *cobra.Command, decide func(published.Cluster, join.Request) (control.Decision, error)) *cobra.Command {
	return onCluster(cmd, 1, func(c published.Cluster, args []string) error {
		var at *client.Provider
		var found join.Request
		err := c.Providers.All(func(some *client.Provider) error {
			all, err := some.Joins(cmd.Context())
			i := slices.IndexFunc(all, func(r join.Request) bool { return r.Host == args[0] })
			if i >= 0 && (at == nil || all[i].State == hostapi.JoinPending) {
				at, found = some, all[i]
			}
			return err
		})
		if err != nil {
			return err
		}
		if at == nil {
			return fmt.Errorf("no device requested to be %.64q: florctl join list", args[0])
		}
		d, err := decide(c, found)
		if err != nil {
			return err
		}
		r, err := at.DecideJoin(cmd.Context(), args[0], d)
		if err == nil {
			fmt.Fprintf(cmd.OutOrStdout(), "device %s is %s as %s\n", found.Fingerprint(), terminal.Text(string(r.State)), found.Host)
		}
		return err
	})
}
