package main

import (
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/nix/operator/authority"
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
		Long: `Create the root of a trust domain. The root is the certificate authority from which all
certificates of a cluster come. You need this command only without florctl init, which also
creates a root. The command writes four files to DIR, and does not overwrite existing files:

  ca.crt       the root certificate, which belongs in the flake
  ca.key       the root key, which you keep offline; florctl ca sign uses it
  enrol.crt    the certificate that signs the certificates in identity files
  enrol.key    the key of enrol.crt; florctl identity issue uses it

To encrypt the keys with age, pass --passphrase or --seal-to. To decrypt a key later, run age
--decrypt. To keep the root key on a PKCS #11 token, from which nobody can copy it, pass
--pkcs11. The file ca.key then contains the URI of the key.`,
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
		Long: `Sign the issuing certificate of a provider host, with which the host issues certificates to
other hosts. Run this command on the machine that has the root key. The command reads the
provider's certificate request from the file CSR or from standard input.

To put the certificate into use, run flor-provider install-cert on the provider host. To revoke
the certificate, pass its serial number to florctl revoke --serial.`,
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
