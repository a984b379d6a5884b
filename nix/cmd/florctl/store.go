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
	cmd := &cobra.Command{Use: "store", Short: "Issue certificates for the etcd of provider hosts"}
	cmd.AddCommand(newStoreInitCmd(), newStoreIssueCmd())
	return cmd
}

func newStoreInitCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init --trust-domain NAME --out DIR",
		Short: "Create the CA of the etcd that provider hosts share",
		Long: `Create the CA that certifies members and clients of the etcd store which provider hosts share
(providers.store): store-ca.crt and store-ca.key. Keep both offline. It is separate from the root of
the cluster, since the providers that issue its certificates keep their state in that store.`,
		Args: cobra.NoArgs,
	}
	trustDomain := cmd.Flags().String("trust-domain", "", "`NAME` of the trust domain, such as demo.flor")
	out := cmd.Flags().String("out", "", "`DIR` for store-ca.crt and store-ca.key")
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
		Long: `Create the keys and certificates of a provider host for the etcd store that provider hosts share:
those of a client, and with --address also those of the member that runs on the host. Copy them to
/etc/florete/store on the host, which only root reads:

  florctl store issue forge --address 192.0.2.1 --out forge-store
  ssh root@forge mkdir -p -m 700 /etc/florete/store
  scp forge-store/* root@forge:/etc/florete/store/

The host restarts its member and its providers seconds later. Pass every address of the member:
members accept each other by the address they call from. To renew, run the command again before the
certificates end, and copy the files to one host after the other.`,
		Args: cobra.ExactArgs(1),
	}
	crt := cmd.Flags().String("ca-cert", "store-ca.crt", "`FILE` of the CA's certificate")
	key := cmd.Flags().String("ca-key", "store-ca.key", "`FILE` of the CA's key")
	out := cmd.Flags().String("out", "", "`DIR` for the files of the host")
	var s authority.StoreHost
	cmd.Flags().StringArrayVar(&s.Addresses, "address", nil, "`ADDRESS` of the member, an IP address or a name; may be repeated")
	cmd.Flags().DurationVar(&s.Lifetime, "lifetime", ca.StoreLifetime, "lifetime of the certificates, at most that of the CA")
	cmd.MarkFlagRequired("out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s.Host = args[0]
		return s.Issue(*crt, *key, *out, cmd.OutOrStdout())
	}
	return cmd
}
