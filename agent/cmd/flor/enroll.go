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
	"github.com/florete/florete/activation/enrol"
	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/providers/agefile"
)

func newIDCmd(m *instance) *cobra.Command {
	cmd := &cobra.Command{Use: "id", Short: "Request an identity file"}
	cmd.AddCommand(newIDCreateCmd(m))
	return cmd
}

func newIDCreateCmd(m *instance) *cobra.Command {
	var h enrol.Host
	cmd := &cobra.Command{
		Use:   "create > FILE",
		Short: "Create the request for an identity file",
		Long: `Create the private keys of this host's certificates, which stay on the host, and print the request
for an identity file. The request has no secrets. florctl id issue --request FILE makes the identity
file from it, and flor enroll installs that here. The fingerprint on standard error is for florctl
id issue --device, where the flake has no SSH host key of this host.`,
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
			fmt.Fprintf(cmd.ErrOrStderr(), "request signed by key %s: florctl id issue --request FILE, and flor enroll here\n", fingerprint)
			_, err = cmd.OutOrStdout().Write(append(b, '\n'))
			return err
		},
	}
	m.state(cmd, &h.State)
	cmd.Flags().StringVar(&h.HostKey, "ssh-host-key", activation.DefaultHostKey, "`FILE` of the SSH host key that proves this host")
	return cmd
}

// enrollWait is the time that flor enroll waits for activation, which checks every ten seconds.
const enrollWait = 45 * time.Second

func newEnrollCmd(m *instance) *cobra.Command {
	var h enrol.Host
	var out, trust string
	cmd := &cobra.Command{
		Use:   "enroll FILE",
		Short: "Install an identity file",
		Long: `Install an identity file that florctl id issue made: open it with the key of this host, with
--identity or with a passphrase; verify everything in it; and let activation deliver it, which is
started if it does not run. From then on activation renews over the network, where there is one.
FILE "-" is standard input. If anything is wrong with the file, nothing is installed.

On a machine that is no host of the flake, pass the directory of the certificate with --out, and
the cluster's public signing key with --trust. Such a file has one identity, and the next file
replaces it. To undo it, remove the directory.`,
		Args: cobra.ExactArgs(1),
	}
	identities := agefile.Opening(cmd, "", "the file")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		sealed, err := readEnrolled(cmd.InOrStdin(), args[0])
		if err != nil {
			return err
		}
		open, err := identities(args[0])
		if err != nil {
			return err
		}
		if out != "" {
			return enrollOne(cmd.OutOrStdout(), args[0], sealed, open, out, trust)
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
		return deliverEnrolled(cmd.Context(), m, h, offer, cmd.OutOrStdout())
	}
	m.state(cmd, &h.State)
	f := cmd.Flags()
	f.StringVar(&h.HostKey, "ssh-host-key", activation.DefaultHostKey, "`FILE` of the SSH host key that proves this host")
	f.StringVar(&out, "out", "", "`DIR` for the certificate of a machine that is no host of the flake")
	f.StringVar(&trust, "trust", "", "with --out, the cluster's public signing `KEY`, NAME:BASE64")
	cmd.MarkFlagsRequiredTogether("out", "trust")
	return cmd
}

// enrollOne installs the single certificate of a machine that is not a host.
func enrollOne(w io.Writer, file string, sealed []byte, identities []age.Identity, dir, trust string) error {
	plain, err := agefile.Open(sealed, identities)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	svid, err := enrol.One(plain, dir, trust, time.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	fmt.Fprintf(w, "%s: certificate of %s until %s\n", hostdir.Current(dir), svid.ID.Short(), svid.Cert.Leaf.NotAfter.UTC().Format(time.RFC3339))
	return nil
}

func readEnrolled(in io.Reader, file string) ([]byte, error) {
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
		err = fmt.Errorf("%s: not sealed with age: want what florctl id issue wrote", file)
	}
	return b, err
}

// openWith decrypts a file with the host's own key or with the named identities.
func openWith(h enrol.Host, sealed []byte, named []age.Identity) ([]byte, error) {
	doc, err := h.State.Manifest()
	if err != nil {
		return nil, fmt.Errorf("%w: install this host's documents and start its units first", err)
	}
	if b, err := os.ReadFile(h.KeyFile(doc.Manifest())); err == nil {
		if own, err := agefile.Identities(bytes.TrimSpace(b)); err == nil { // if age supports the type of the key
			named = append(own, named...)
		}
	}
	return agefile.Open(sealed, named)
}

// deliverEnrolled makes activation deliver the installed identity file and waits for it.
func deliverEnrolled(ctx context.Context, m *instance, h enrol.Host, o *enrol.Offer, out io.Writer) error {
	unit := m.Unit("activate.service")
	if err := units.Start(ctx, unit); errors.Is(err, units.ErrNoSystemd) {
		fmt.Fprintln(out, "no systemd runs here: flor activate delivers it")
	} else if err != nil {
		return fmt.Errorf("%w: it is installed, and delivered once activation runs", err)
	}
	for end := time.Now().Add(enrollWait); ; {
		done, err := h.Delivered()
		if err != nil {
			return err
		}
		if done {
			fmt.Fprintf(out, "%s is delivered: activation renews it over the network, where there is one\n", o.Set.Manifest.Host)
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("installed, but not delivered after %s: flor status", enrollWait)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(200 * time.Millisecond):
		}
	}
}
