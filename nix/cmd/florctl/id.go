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

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/identityfile"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/agefile"
	"github.com/florete/florete/providers/ca"
)

func newIDCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "id", Short: "Issue identity files"}
	cmd.AddCommand(newIDIssueCmd(), newIDListCmd())
	return cmd
}

func newIDIssueCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issue [FLAKE] (--host HOST | --request FILE | --id ID) --key FILE --out FILE",
		Short: "Issue an identity file",
		Long: `Issue an identity file: a sealed file with the certificates of a host, its documents and the
revocation list. It is for machines without a network, and for the first operator. On the machine,
flor enroll FILE installs it; from then on the machine renews over the network, where there is one.

The keys are made here:

  florctl id issue --host laptop --key ~/demo-ca/signing.key --out laptop.age --passphrase

or on the machine, which they never leave then:

  flor id create > laptop.request                                        (on the machine)
  florctl id issue --request laptop.request --key ~/demo-ca/signing.key --out laptop.age

With --id, the file has the one certificate of a user, a service or a vertex, for a machine that is
no host of the flake. Install it there with flor enroll FILE --out DIR --trust KEY.

The file is sealed with age to the host's own key, where that is known. Otherwise pass a passphrase
or a recipient. The certificates are signed with enrol.key, and recorded beside it and in the audit
log of a provider. florctl id list prints them, and florctl revoke takes them back.`,
	}
	i := &identityfile.Issuing{}
	from, reach, key := source(cmd), via(cmd), signing(cmd)
	f := cmd.Flags()
	f.StringVar(&i.Host, "host", "", "`HOST` to issue the file for, with keys that are made here")
	f.StringVar(&i.Request, "request", "", "`FILE` of the request that flor id create printed")
	f.StringVar(&i.ID, "id", "", "issue the one certificate of this `ID`, such as user/alice, for a machine that is no host")
	f.StringVar(&i.Device, "device", "", "`FINGERPRINT` that flor id create printed, where the flake has no sshHostKey of the host")
	cmd.MarkFlagsOneRequired("host", "request", "id")
	cmd.MarkFlagsMutuallyExclusive("host", "request", "id")
	cmd.MarkFlagRequired("key")
	out := f.String("out", "", "write the identity file to `FILE`, or to standard output for -")
	cmd.MarkFlagRequired("out")
	f.StringVar((*string)(&i.Dir), "dir", ".", "`DIR` of enrol.crt and enrol.key")
	f.DurationVar(&i.Lifetime, "lifetime", 7*24*time.Hour, "lifetime of the certificates, at most 90 days")
	offline := f.Bool("offline", false, "issue without asking a provider: revocations and joined devices are not considered, and the audit log gets no row")
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

func newIDListCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "list --dir DIR",
		Short: "Print the certificates of identity files",
		Long: `Print the certificates that florctl id issue signed, from the record beside enrol.crt. To take
one back, pass its serial number to florctl revoke --serial.`,
		Args: cobra.NoArgs,
	}
	dir := cmd.Flags().String("dir", ".", "`DIR` of enrol.crt and enrol.key")
	show := shown(cmd, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		cert := ca.Dir(*dir).Path(ca.EnrolmentCertificate)
		if _, err := os.Lstat(cert); errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%s: there is no enrolment certificate, want the directory that has it: florctl id list --dir DIR", cert)
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
