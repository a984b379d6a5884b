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
	cmd := &cobra.Command{Use: "id", Short: "Issue identity files, for machines without a network and the first operator"}
	cmd.AddCommand(newIDIssueCmd(), newIDListCmd())
	return cmd
}

func newIDIssueCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "issue [FLAKE] (--host HOST | --request FILE | --id ID) --key FILE --out FILE",
		Short: "Make an identity file: what a host without a network would have fetched",
		Long: `Make an identity file of a host: the certificates that the flake gives it, with its
documents and the revocation list. flor enroll FILE installs it there; from then on the host
renews over the network, where there is one. Keys are made here:

  florctl id issue --host laptop --key signing.key --out laptop.age --passphrase

or on the host, and do not leave it:

  flor id create > laptop.request                                        (there)
  florctl id issue --request laptop.request --key signing.key --out laptop.age

With --id it is the one certificate of a user, a service or a vertex, for a machine that is no
host of the flake: flor enroll FILE --out DIR --trust KEY.

The file is sealed with age to the host's own key, where that is known; otherwise name a
passphrase or a recipient. The certificates are signed with enrol.key, which florctl ca init
makes, and recorded beside it (florctl id list) and in the audit log of a provider.`,
	}
	i := &identityfile.Issuing{}
	from, reach, key := source(cmd), via(cmd), signing(cmd)
	f := cmd.Flags()
	f.StringVar(&i.Host, "host", "", "whose keys are to be made here")
	f.StringVar(&i.Request, "request", "", "`FILE` that flor id create printed")
	f.StringVar(&i.ID, "id", "", "one `ID`, such as user/alice or vertex/gate, for a machine that is no host")
	f.StringVar(&i.Device, "device", "", "the `FINGERPRINT` that flor id create printed, where the flake has no sshHostKey of the host")
	cmd.MarkFlagsOneRequired("host", "request", "id")
	cmd.MarkFlagsMutuallyExclusive("host", "request", "id")
	cmd.MarkFlagRequired("key")
	out := f.String("out", "", "write the identity file to `FILE`, - for standard output")
	cmd.MarkFlagRequired("out")
	f.StringVar((*string)(&i.Dir), "dir", ".", "`DIR`ectory with enrol.crt and enrol.key")
	f.DurationVar(&i.Lifetime, "lifetime", 7*24*time.Hour, "of the certificates, 90 days at most")
	offline := f.Bool("offline", false, "do without providers: whatever is revoked or has joined, and with no row in the audit log")
	open := agefile.Opening(cmd, "ca-", "enrol.key, where it is sealed")
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
		Short: "Print the certificates that florctl id issue made",
		Long: `Print the certificates that florctl id issue made, by the record beside enrol.crt. florctl
revoke has hosts refuse one of them, all of a host, or a device.`,
		Args: cobra.NoArgs,
	}
	dir := cmd.Flags().String("dir", ".", "`DIR`ectory with enrol.crt and enrol.key")
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
