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
	cmd := &cobra.Command{Use: "ca", Short: "Manage the certificate authority of the cluster"}
	cmd.AddCommand(newCAInitCmd(), newCASignCmd(), newCAEnrolmentCmd(), newCAStatusCmd(), newCARotateCmd(), newCAWebCmd())
	return cmd
}

func newCAInitCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "init --trust-domain NAME --out DIR",
		Short: "Create the root of a trust domain",
		Long: `Create the root of a trust domain, the certificate authority that all certificates of a cluster
lead to. florctl init also does this for a new cluster. The command writes four files to DIR,
and replaces none that exist:

  ca.crt       the root certificate, which belongs into the flake
  ca.key       the root key, which you keep offline; florctl ca sign uses it
  enrol.crt    the certificate that signs the certificates in identity files
  enrol.key    the key of enrol.crt; florctl id issue uses it

The keys can be encrypted with age, see --passphrase and --seal-to. age --decrypt opens an
encrypted key, and age --armor --passphrase encrypts a key that exists. With --pkcs11, the root
key stays on a token, from which it cannot be copied, and ca.key contains the URI of the key.`,
		Args: cobra.NoArgs,
	}
	trustDomain := cmd.Flags().String("trust-domain", "", "`NAME` of the trust domain, such as demo.flor")
	out := cmd.Flags().String("out", "", "`DIR` to write the files to")
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
		Long: `Sign the certificate with which a provider host issues certificates to other hosts. Run this
command where the root key is. The provider's request for the certificate (CSR) is read from the
file CSR or from standard input. The certificate is written to --out or to standard output.

The certificate takes effect when flor-provider install-cert has installed it on the provider
host. To take it back, pass its serial number to florctl revoke --serial.`,
		Args: cobra.MaximumNArgs(1),
	}
	crt := cmd.Flags().String("ca-cert", "ca.crt", "`FILE` that contains the root certificate")
	key := cmd.Flags().String("ca-key", "ca.key", "`FILE` that contains the root key")
	out := cmd.Flags().String("out", atomicfile.Stdout, "write the issuing certificate to this `FILE`, or to standard output if it is -")
	lifetime := cmd.Flags().Duration("lifetime", ca.IssuingLifetime, "time until the certificate expires, at most that of the root")
	open := agefile.Opening(cmd, "", "the root key, if the key is encrypted")
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
