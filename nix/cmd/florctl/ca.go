package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/nix/operator/authority"
	"github.com/florete/florete/providers/agefile"
	"github.com/florete/florete/providers/ca"
)

func newCACmd() *cobra.Command {
	cmd := &cobra.Command{Use: "ca", Short: "Keep the cluster's certificate authority"}
	cmd.AddCommand(newCAInitCmd(), newCASignCmd(), newCAEnrolmentCmd(), newCAStatusCmd(), newCARotateCmd(), newCAWebCmd())
	return cmd
}

func newCAInitCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init --trust-domain NAME --out DIR",
		Short: "Make the root of a trust domain",
		Long: `Make the root of a trust domain: ca.crt, which goes into the flake, and ca.key,
which is kept offline and signs with florctl ca sign. Beside them it makes enrol.crt and
enrol.key, with which florctl id issue makes identity files: the first operator's, and those
of machines without a network. Keys are age files where they are sealed: age --decrypt opens
them too, and age --armor --passphrase seals one that is there. On a token the key is where
nobody can copy it, and ca.key has its URI instead.`,
		Args: cobra.NoArgs,
	}
	trustDomain := cmd.Flags().String("trust-domain", "", "trust domain, such as demo.flor")
	out := cmd.Flags().String("out", "", "directory for ca.crt and ca.key")
	cmd.MarkFlagRequired("trust-domain")
	cmd.MarkFlagRequired("out")
	how := authority.RootKeyFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		root, enrolment, kept, err := authority.Make(ca.Dir(*out), *trustDomain, how)
		if err != nil {
			return err
		}
		dir := ca.Dir(*out)
		fmt.Fprintf(cmd.OutOrStdout(), "%s: root of %s until %s, for the flake\n%s: its key, %s\n",
			dir.Path("ca.crt"), *trustDomain, root.NotAfter.Format(time.DateOnly), dir.Path("ca.key"), kept)
		fmt.Fprintf(cmd.OutOrStdout(), "%s: issues identity files until %s, with %s\n",
			dir.Path(ca.EnrolmentCertificate), enrolment.NotAfter.Format(time.DateOnly), dir.Path(ca.EnrolmentKey))
		return nil
	}
	return cmd
}

func newCASignCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "sign [CSR] --ca-cert FILE --ca-key FILE",
		Short: "Sign the issuing certificate of a provider",
		Long: `Sign a provider's request for an issuing certificate with the root's key. Without
CSR it is read from standard input, without --out the certificate goes to standard
output, so that one line does all of it:

  ssh root@forge cat /var/lib/florete-provider/cert/issuing.csr | florctl ca sign | ssh root@forge flor-provider install-cert`,
		Args: cobra.MaximumNArgs(1),
	}
	crt := cmd.Flags().String("ca-cert", "ca.crt", "root certificate `FILE`")
	key := cmd.Flags().String("ca-key", "ca.key", "root key `FILE`")
	out := cmd.Flags().String("out", atomicfile.Stdout, "`FILE` for the issuing certificate")
	lifetime := cmd.Flags().Duration("lifetime", ca.IssuingLifetime, "of the certificate, but no longer than the root's")
	open := agefile.Opening(cmd, "", "a sealed key")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		from, csr := "standard input", cmd.InOrStdin()
		if len(args) == 1 {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			from, csr = args[0], f
		}
		trustDomain, issuing, err := authority.SignIssuing(*crt, *key, open, from, csr, *lifetime)
		if err != nil {
			return err
		}
		told := fmt.Sprintf("issues for %s until %s", trustDomain, issuing.NotAfter.Format(time.DateOnly))
		messages, err := output(cmd, *out, 0o644, ca.EncodeCertificates(issuing))
		if err != nil {
			return err
		}
		if *out == atomicfile.Stdout {
			fmt.Fprintf(messages, "the certificate %s\n", told)
		} else {
			fmt.Fprintf(messages, "%s: %s\n", *out, told)
		}
		return nil
	}
	return cmd
}
