package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/identityfile"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/ca"
)

func newIdentityCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "identity", Short: "Issue identity files"}
	cmd.AddCommand(newIdentityIssueCmd(), newIdentityListCmd())
	return cmd
}

func newIdentityIssueCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issue [FLAKE] (--host HOST | --request FILE | --id ID) --key FILE --out FILE",
		Short: "Issue an identity file for a machine",
		Long: `Issue an identity file for a machine that cannot reach a provider, or for the machine of the
first operator. The file contains the certificates of the host, its documents and the revocation
list. On the machine, install the file with flor identity install FILE. After that, the machine
renews its certificates over the network, if it has one.

The private keys can be created here:

  florctl identity issue --host laptop --key ~/demo-ca/signing.key --out laptop.age --passphrase

Or they can be created on the machine, and never leave it:

  flor identity create > laptop.request                                        (on the machine)
  florctl identity issue --request laptop.request --key ~/demo-ca/signing.key --out laptop.age

With --id, the file contains the certificate of a single user, service, vertex or outside caller.
Use --id for a machine that is not a host of the flake. To install the file, run flor identity
install FILE --out DIR --trust KEY.

The file is encrypted with age, to the SSH host key of the host if the flake has this key.
Otherwise, pass a passphrase or a recipient.

The certificates in the file are signed with enrol.key. To print the certificates that were
signed, run florctl identity list. To revoke them, run florctl revoke.`,
	}
	i := &identityfile.Issuing{}
	from, reach, key := source(cmd), via(cmd), signing(cmd)
	f := cmd.Flags()
	f.StringVar(&i.Host, "host", "", "name of the `HOST` to issue the file for; its private keys are created here")
	f.StringVar(&i.Request, "request", "", "`FILE` that contains the request which flor identity create printed on the machine")
	f.StringVar(&i.ID, "id", "", "issue a single certificate for this `ID`, such as user/alice, to a machine that is not a host of the flake")
	f.StringVar(&i.Device, "device", "", "`FINGERPRINT` that flor identity create printed on the machine, if the flake has no sshHostKey of the host")
	cmd.MarkFlagsOneRequired("host", "request", "id")
	cmd.MarkFlagsMutuallyExclusive("host", "request", "id")
	cmd.MarkFlagRequired("key")
	out := f.String("out", "", "write the identity file to this `FILE`, or to standard output if it is -")
	cmd.MarkFlagRequired("out")
	f.StringVar((*string)(&i.Dir), "dir", ".", "`DIR` that contains enrol.crt and enrol.key")
	f.DurationVar(&i.Lifetime, "lifetime", 7*24*time.Hour, "time until the certificates expire, at most 90 days (2160h)")
	offline := f.Bool("offline", false, "issue the file without asking a provider; revocations and joined devices are then ignored, and the audit log gets no row")
	open := agefile.Opening(cmd, "ca-", "the sealed enrol.key")
	seal := agefile.Flags(cmd, "the file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if err := identityfile.CheckLifetime(i.Lifetime); err != nil {
			return err
		}
		if *out != atomicfile.Stdout {
			if err := secretfile.RefuseTree(*out); err != nil {
				return err
			}
		}
		src, err := from(args)
		if err == nil {
			i.Key, err = key()
		}
		if err != nil {
			return err
		}
		var online func() (published.Cluster, error)
		if !*offline {
			online = func() (c published.Cluster, err error) {
				t, err := compile.ReadTopology(cmd.Context(), src)
				if err == nil {
					c, err = reach(t)
				}
				return c, err
			}
		}
		file, err := i.Issue(cmd.Context(), src, online, open, func() ([]age.Recipient, error) { return seal.Recipients(*out) })
		if err != nil {
			return err
		}
		messages, err := output(cmd, *out, 0o600, file)
		if err == nil {
			i.Print(messages, *out)
		}
		return err
	}
	return cmd
}

func newIdentityListCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list --dir DIR",
		Short: "Print the certificates that are in identity files",
		Long: `Print the certificates that florctl identity issue has signed for identity files. florctl
identity issue records them beside enrol.crt. To revoke a certificate, pass its serial number to florctl revoke
--serial.`,
		Args: cobra.NoArgs,
	}
	dir := cmd.Flags().String("dir", ".", "`DIR` that contains enrol.crt and enrol.key")
	show := terminal.Shown(cmd, "print the certificates as a JSON list")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cert := ca.Dir(*dir).Path(ca.EnrolmentCertificate)
		if _, err := os.Lstat(cert); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: there is no enrolment certificate, want the directory that has it: florctl identity list --dir DIR", cert)
		}
		all, err := identityfile.Record(ca.Dir(*dir))
		if err != nil {
			return err
		}
		return show(append([]identityfile.Issued{}, all...), func(w io.Writer) error {
			t := terminal.NewTable(w, "ISSUED", "HOST", "IDENTITY", "UNTIL", "SERIAL", "DEVICE")
			for _, i := range all {
				t.Row(i.Time.UTC().Format(time.RFC3339), i.Host, i.ID.Short(), i.Until.UTC().Format(time.RFC3339), i.Serial, i.Device)
			}
			return t.Flush()
		})
	}
	return cmd
}
