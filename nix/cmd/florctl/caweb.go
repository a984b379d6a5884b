package main

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/nix/operator/published"
	"github.com/florete/florete/providers/tls"
)

func newCAWebCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "web [FLAKE]",
		Short: "Fetch the root certificate of public names outside DNS",
		Long: `Fetch the root certificate that browsers need for public names outside DNS, such as
wiki.internal. The command gets the certificate from the provider of kind tls, and prints how to
install it in a browser. To undo the installation, remove the certificate from the browser.

The certificate is valid only for the domains of these names. A browser that trusts it does not
trust it for other websites.`,
	}
	const defaultFile = "web-ca.crt"
	out := cmd.Flags().String("out", defaultFile, "write the certificate to this `FILE`, or to standard output if it is -")
	return onCluster(cmd, 0, func(c published.Cluster, _ []string) error {
		var root tls.Root
		if _, err := c.Ask(cmd.Context(), tls.Name, "/v1/tls/root", nil, &root); err != nil {
			return err
		}
		if !strings.HasPrefix(root.Certificate, "-----BEGIN CERTIFICATE-----") {
			return errors.New("the provider's answer has no certificate")
		}
		messages, err := output(cmd, *out, 0o644, []byte(root.Certificate))
		if err != nil {
			return err
		}
		file := *out
		if file == atomicfile.Stdout {
			file = defaultFile
		}
		explainRoot(messages, file, root)
		return nil
	})
}

// explainRoot prints how people add the root certificate to their browsers.
func explainRoot(w io.Writer, file string, root tls.Root) {
	var pairs []string
	for i := 0; i+2 <= len(root.Fingerprint); i += 2 {
		pairs = append(pairs, strings.ToUpper(root.Fingerprint[i:i+2]))
	}
	fmt.Fprintf(w, `%s: good for names below %s, and no others
SHA-256 %s

Give people the file, and the fingerprint by another way: they compare it where they import the file.
  Firefox           Settings, Privacy & Security, Certificates, View Certificates, Authorities, Import: to identify websites
  Chrome, Chromium  chrome://certificate-manager, Local certificates, Custom: Installed by you, Import
  Debian            cp %[1]s /usr/local/share/ca-certificates/ && update-ca-certificates
  NixOS             security.pki.certificateFiles = [ ./%[4]s ];
  macOS             security add-trusted-cert -r trustRoot -k ~/Library/Keychains/login.keychain-db %[1]s
  Windows           certutil -user -addstore Root %[1]s
  Android, iOS      open the file; on iOS also Settings, General, About, Certificate Trust Settings
`, file, strings.Join(root.Domains, ", "), strings.Join(pairs, ":"), filepath.Base(file))
}
