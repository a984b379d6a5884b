package main

import (
	"fmt"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/authority"
	"github.com/florete/florete/providers/ca"
)

func newStoreCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "store", Short: "Issue certificates for the etcd store of provider hosts"}
	cmd.AddCommand(newStoreInitCmd(), newStoreIssueCmd())
	return cmd
}

func newStoreInitCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init --trust-domain NAME --out DIR",
		Short: "Create the CA of the etcd store that provider hosts share",
		Long: `Create the certificate authority (CA) of the etcd store that provider hosts share. You need a CA
if several provider hosts share their state (providers.store in the topology). It signs the
certificates of the etcd members and clients. The command writes store-ca.crt and store-ca.key
to DIR. Keep both files offline.

This CA is separate from the root of the cluster, because the providers that issue the
certificates of the cluster keep their own state in the store.`,
		Args: cobra.NoArgs,
	}
	trustDomain := cmd.Flags().String("trust-domain", "", "`NAME` of the trust domain, such as demo.flor")
	out := cmd.Flags().String("out", "", "`DIR` to write store-ca.crt and store-ca.key to")
	cmd.MarkFlagRequired("trust-domain")
	cmd.MarkFlagRequired("out")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		c, err := authority.MakeStore(*out, *trustDomain)
		if err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: CA of the store of %s until %s\n%s: its key, keep it offline\n",
			filepath.Join(*out, "store-ca.crt"), *trustDomain, c.NotAfter.Format(time.DateOnly), filepath.Join(*out, "store-ca.key"))
		return nil
	}
	return cmd
}

func newStoreIssueCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issue HOST --ca-cert FILE --ca-key FILE --out DIR [--address ADDRESS]…",
		Short: "Issue the etcd certificates of a provider host",
		Long: `Issue the certificates that a provider host needs to use the shared etcd store. The command
writes the certificates and their keys to DIR. A host with an etcd member also needs --address.
Copy the files to /etc/florete/store on the host, which only root may read:

  florctl store issue forge --address 192.0.2.1 --out forge-store
  ssh root@forge mkdir -p -m 700 /etc/florete/store
  scp forge-store/* root@forge:/etc/florete/store/

The host restarts its etcd member and its providers within seconds.

Pass --address for every address of the member, because the members check the address of each
other's connections.

To renew the certificates, run the command again before they expire. Then copy the files to one
host after the other.`,
		Args: cobra.ExactArgs(1),
	}
	crt := cmd.Flags().String("ca-cert", "store-ca.crt", "`FILE` that contains the certificate of the CA")
	key := cmd.Flags().String("ca-key", "store-ca.key", "`FILE` that contains the key of the CA")
	out := cmd.Flags().String("out", "", "`DIR` to write the files of the host to")
	var s authority.StoreHost
	cmd.Flags().StringArrayVar(&s.Addresses, "address", nil, "`ADDRESS` of the member on the host, an IP address or a name; may be repeated")
	cmd.Flags().DurationVar(&s.Lifetime, "lifetime", ca.StoreLifetime, "time until the certificates expire, at most that of the CA")
	cmd.MarkFlagRequired("out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s.Host = args[0]
		return s.Issue(*crt, *key, *out, cmd.OutOrStdout())
	}
	return cmd
}
