package main

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/spiffe"
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
		crt, key := filepath.Join(*out, "store-ca.crt"), filepath.Join(*out, "store-ca.key")
		for _, path := range []string{crt, key} {
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("%s: is there already: it is made once, choose another directory", path)
			}
		}
		a, err := ca.NewStore(*trustDomain, time.Now())
		if err != nil {
			return err
		}
		if err := pair(*out, "store-ca", a.Certificate, a.Key); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: CA of the store of %s until %s\n%s: its key, keep it offline\n",
			crt, *trustDomain, a.Certificate.NotAfter.Format(time.DateOnly), key)
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
	addresses := cmd.Flags().StringArray("address", nil, "`ADDRESS` of the member, an IP address or a name; several times")
	lifetime := cmd.Flags().Duration("lifetime", ca.StoreLifetime, "of the certificates, but no longer than the CA's")
	cmd.MarkFlagRequired("out")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if *lifetime < time.Hour {
			return fmt.Errorf("--lifetime %s: want an hour at least, such as 2160h for 90 days", *lifetime)
		}
		if err := secretfile.RefuseTree(*key); err != nil {
			return err
		}
		if _, err := spiffe.ParseID("spiffe://demo.flor/node/" + args[0]); err != nil {
			return fmt.Errorf("host %q: want its name in the flake", args[0])
		}
		a, err := ca.LoadStore(*crt, *key)
		if err != nil {
			return err
		}
		now := time.Now()
		issue := map[string]func(crypto.PublicKey) (*x509.Certificate, error){
			"client": func(k crypto.PublicKey) (*x509.Certificate, error) {
				return a.IssueClient(k, args[0], now.Add(*lifetime), now)
			},
		}
		if len(*addresses) > 0 {
			all := append([]string{"localhost", net.IPv4(127, 0, 0, 1).String(), net.IPv6loopback.String()}, *addresses...)
			issue["member"] = func(k crypto.PublicKey) (*x509.Certificate, error) {
				return a.IssueMember(k, all, now.Add(*lifetime), now)
			}
		}
		for _, name := range []string{"client", "member"} {
			if issue[name] == nil {
				continue
			}
			k, err := ca.NewKey()
			if err != nil {
				return err
			}
			c, err := issue[name](k.Public())
			if err != nil {
				return err
			}
			if err := pair(*out, name, c, k); err != nil {
				return err
			}
			fmt.Fprintf(cmd.OutOrStdout(), "%s: %s of the store until %s\n", filepath.Join(*out, name+".crt"), name, c.NotAfter.Format(time.DateOnly))
		}
		return ca.Save(filepath.Join(*out, "ca.crt"), ca.EncodeCertificates(a.Certificate))
	}
	return cmd
}

// pair writes a key and its certificate, and no key into a git work tree.
func pair(dir, name string, c *x509.Certificate, key crypto.Signer) error {
	path := filepath.Join(dir, name+".key")
	if err := secretfile.RefuseTree(path); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := ca.SaveKey(path, key); err != nil {
		return err
	}
	return ca.Save(filepath.Join(dir, name+".crt"), ca.EncodeCertificates(c))
}
