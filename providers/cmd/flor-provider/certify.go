package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/settings"
)

// certifyCmd puts the issuing certificate in force that a person has signed. It may
// run beside the provider, which sees it within a second.
func certifyCmd(t *target) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "certify",
		Short: "Take the issuing certificate that florctl ca sign made",
		Long: `Read the issuing certificate that florctl ca sign made for this host's issuing.csr
from standard input, and put it where the provider looks for it. One that is not for
this provider's key, or leads to no root of its policy, is refused.`,
	}
	return t.withSettings(cmd, func(cmd *cobra.Command, s *settings.Settings) error {
		if s.Cert == nil {
			return errors.New(`this host issues no certificates: its settings have no "cert"`)
		}
		policy, err := readPolicy(s)
		if err != nil {
			return err
		}
		text, err := io.ReadAll(cmd.InOrStdin())
		if err != nil {
			return err
		}
		a, err := ca.Parse("standard input", text, issuingKey(s))
		if errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("%w: systemctl start %s makes it", err, t.Unit("provider.service"))
		}
		if err != nil {
			return err
		}
		if err := cert.Trusted(a, policy); err != nil {
			return err
		}
		if err := ca.Save(s.Cert.IssuingCertificate, ca.EncodeCertificates(a.Certificate)); err != nil {
			return err
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s: issues for %s until %s\n", s.Cert.IssuingCertificate, a.TrustDomain(), a.Certificate.NotAfter.Format(time.DateOnly))
		return nil
	})
}
