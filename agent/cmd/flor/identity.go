package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/florete/florete/activation"
	"github.com/florete/florete/activation/identityfile"
	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

func newIdentityCmd(m *instance) *cobra.Command {
	cmd := &cobra.Command{Use: "identity", Short: "Request and install identity files"}
	cmd.AddCommand(newIdentityCreateCmd(m), newIdentityInstallCmd(m))
	return cmd
}

func newIdentityCreateCmd(m *instance) *cobra.Command {
	var h identityfile.Host
	cmd := &cobra.Command{
		Use:   "create > FILE",
		Short: "Request an identity file",
		Long: `Request an identity file for a machine that cannot reach a provider. Run this command on that
machine. The command creates the private keys of the machine's certificates, and prints a
request. The private keys stay on the machine, and the request contains no secrets.

An operator makes the identity file from the request with florctl identity issue --request FILE.
Then install the identity file on this machine with flor identity install.

The command prints a fingerprint on standard error. If the flake has no SSH host key of this
host, the operator passes this fingerprint to florctl identity issue --device.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			r, fingerprint, err := h.Request()
			if err != nil {
				return err
			}
			b, err := json.Marshal(r)
			if err != nil {
				return err
			}
			fmt.Fprintf(cmd.ErrOrStderr(), "request signed by key %s: florctl identity issue --request FILE, and flor identity install here\n", fingerprint)
			_, err = cmd.OutOrStdout().Write(append(b, '\n'))
			return err
		},
	}
	m.state(cmd, &h.State)
	cmd.Flags().StringVar(&h.HostKey, "ssh-host-key", activation.DefaultHostKey, "`FILE` that contains the SSH host key of this host")
	return cmd
}

// deliveryWait is the time that flor identity install waits for activation to deliver the
// certificate. Activation checks for a new identity file every ten seconds.
const deliveryWait = 45 * time.Second

func newIdentityInstallCmd(m *instance) *cobra.Command {
	var h identityfile.Host
	var out, trust string
	cmd := &cobra.Command{
		Use:   "install FILE",
		Short: "Install an identity file",
		Long: `Install an identity file, which gives this machine its certificates without a network. An
operator makes the file with florctl identity issue. The command verifies the file, and flor
activate delivers its content. If anything is wrong with the file, nothing is installed. Later, the
machine renews its certificates over the network, if it has one.

The file is encrypted. The command opens it with the SSH host key of the machine, with
--identity or with a passphrase. If FILE is -, the command reads the file from standard input.

On a machine that is not a host of the flake, pass --out with a directory for the certificate,
and --trust with the public signing key of the cluster. The next file replaces the certificate.
To undo the installation, remove the directory.`,
		Args: cobra.ExactArgs(1),
	}
	identities := agefile.Opening(cmd, "", "the file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		sealed, err := readIdentityFile(cmd.InOrStdin(), args[0])
		if err != nil {
			return err
		}
		open, err := identities(args[0])
		if err != nil {
			return err
		}
		if out != "" {
			return installOne(cmd.OutOrStdout(), args[0], sealed, open, out, trust)
		}
		plain, err := openWith(h, sealed, open)
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		offer, err := h.Verify(plain, time.Now())
		if err != nil {
			return fmt.Errorf("%s: %w", args[0], err)
		}
		if err := offer.Install(); err != nil {
			return err
		}
		manifest := offer.Set.Manifest
		fmt.Fprintf(cmd.OutOrStdout(), "identity file of %s: %d certificates until %s, documents of serial %d\n",
			manifest.Host, len(offer.Needs), offer.Until.UTC().Format(time.RFC3339), offer.Set.Document.Envelope.Serial)
		return awaitDelivery(cmd.Context(), m, h, offer, cmd.OutOrStdout())
	}
	m.state(cmd, &h.State)
	f := cmd.Flags()
	f.StringVar(&h.HostKey, "ssh-host-key", activation.DefaultHostKey, "`FILE` that contains the SSH host key of this host")
	f.StringVar(&out, "out", "", "`DIR` for the certificate, on a machine that is not a host of the flake")
	f.StringVar(&trust, "trust", "", "public signing `KEY` of the cluster, NAME:BASE64; needed with --out")
	cmd.MarkFlagsRequiredTogether("out", "trust")
	return cmd
}

// installOne installs the certificate from an identity file on a machine that is not a host, such as
// a laptop with a single certificate.
func installOne(w io.Writer, file string, sealed []byte, identities []age.Identity, dir, trust string) error {
	plain, err := agefile.Open(sealed, identities)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	svid, err := identityfile.One(plain, dir, trust, time.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fmt.Fprintf(w, "%s: certificate of %s until %s\n", hostdir.Current(dir), svid.ID.Short(), svid.Cert.Leaf.NotAfter.UTC().Format(time.RFC3339))
	return nil
}

func readIdentityFile(in io.Reader, file string) ([]byte, error) {
	if file != "-" {
		f, err := os.Open(file)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, hostapi.MaxIdentityFile+1))
	if err == nil && len(b) > hostapi.MaxIdentityFile {
		err = fmt.Errorf("%s: over %d bytes: no identity file", file, hostapi.MaxIdentityFile)
	}
	if err == nil && !agefile.Sealed(b) {
		err = fmt.Errorf("%s: not sealed with age: want a file that florctl identity issue wrote", file)
	}
	return b, err
}

// openWith decrypts an identity file with the host's own key or with the age identities that the
// caller named.
func openWith(h identityfile.Host, sealed []byte, named []age.Identity) ([]byte, error) {
	doc, err := h.State.Manifest()
	if err != nil {
		return nil, fmt.Errorf("%w: install this host's documents and start its units first", err)
	}
	if b, err := os.ReadFile(h.KeyFile(doc.Manifest())); err == nil {
		if own, err := agefile.Identities(bytes.TrimSpace(b)); err == nil { // only if age supports the type of the host key
			named = append(own, named...)
		}
	}
	return agefile.Open(sealed, named)
}

// awaitDelivery makes activation deliver the identity file that was installed, and waits until the
// delivery is complete.
func awaitDelivery(ctx context.Context, m *instance, h identityfile.Host, o *identityfile.Offer, out io.Writer) error {
	unit := m.Unit("activate.service")
	if err := units.Start(ctx, unit); errors.Is(err, units.ErrNoSystemd) {
		fmt.Fprintln(out, "no systemd runs here: flor activate delivers it")
	} else if err != nil {
		return fmt.Errorf("%w: it is installed, and delivered once activation runs", err)
	}
	for end := time.Now().Add(deliveryWait); ; {
		done, err := h.Delivered()
		if err != nil {
			return err
		}
		if done {
			fmt.Fprintf(out, "%s is delivered: activation renews it over the network, where there is one\n", o.Set.Manifest.Host)
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("installed, but not delivered after %s: flor status", deliveryWait)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
