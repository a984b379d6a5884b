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
	cmd := &cobra.Command{Use: "store", Short: "Keep the certificates of the store that provider hosts share"}
	cmd.AddCommand(newStoreInitCmd(), newStoreIssueCmd())
	return cmd
}

func newStoreInitCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init --trust-domain NAME --out DIR",
		Short: "Make the CA of the store's members and clients",
		Long: `Make the CA that certifies members and clients of the store which provider hosts share
(providers.store): store-ca.crt and store-ca.key, which are kept offline. It is not the
cluster's: the processes that issue the cluster's certificates keep their state in that store.`,
		Args: cobra.NoArgs,
	}
	trustDomain := cmd.Flags().String("trust-domain", "", "trust domain, such as demo.flor")
	out := cmd.Flags().String("out", "", "directory for store-ca.crt and store-ca.key")
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
		Short: "Certify a host as a client of the store, and as a member at its addresses",
		Long: `Make the keys and certificates with which a host calls the store that provider hosts
share and, with its addresses, those of the member that runs on it. They belong in
/etc/florete/store on the host, which root alone reads:

  florctl store issue forge --address 192.0.2.1 --out forge-store
  ssh root@forge mkdir -p -m 700 /etc/florete/store
  scp forge-store/* root@forge:/etc/florete/store/

Members know each other by the addresses that they call from, so name all of them. Run it
again before the certificates end, and copy the files of one host after the other: seconds
later the host restarts its member and its providers, which then use the new ones.`,
		Args: cobra.ExactArgs(1),
	}
	crt := cmd.Flags().String("ca-cert", "store-ca.crt", "the store's CA, `FILE`")
	key := cmd.Flags().String("ca-key", "store-ca.key", "its key, `FILE`")
	out := cmd.Flags().String("out", "", "`DIR`ectory for what belongs on the host")
	var s authority.StoreHost
	cmd.Flags().StringArrayVar(&s.Addresses, "address", nil, "`ADDRESS` of the member, an IP address or a name; several times")
	cmd.Flags().DurationVar(&s.Lifetime, "lifetime", ca.StoreLifetime, "of the certificates, but no longer than the CA's")
	cmd.MarkFlagRequired("out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s.Host = args[0]
		return s.Issue(*crt, *key, *out, cmd.OutOrStdout())
	}
	return cmd
}
