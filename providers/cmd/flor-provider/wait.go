package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"path/filepath"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/private"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
)

func issuingKey(s *settings.Settings) string { return filepath.Join(s.State, "issuing.key") }

// authority reads the issuing CA.
func (h *host) authority() (*ca.Authority, error) {
	return ca.Load(h.Cert.IssuingCertificate, issuingKey(h.Settings))
}

// issuing makes the issuing key and its certificate request, and waits until a
// person has signed that.
func (h *host) issuing(ctx context.Context) error {
	if err := ca.Request(h.policies.Current().TrustDomain, issuingKey(h.Settings), h.csr()); err != nil {
		return err
	}
	return h.wait(ctx, "the issuing certificate", func() error {
		if err := h.trusted(); err != nil {
			return fmt.Errorf("%w: where the root's key is, run: %s", err, h.sign())
		}
		return nil
	})
}

func (h *host) csr() string { return filepath.Join(h.State, "issuing.csr") }

// sign is the command that has the issuing certificate signed.
func (h *host) sign() string {
	return fmt.Sprintf("ssh %s cat %s | florctl ca sign | ssh %[1]s %[3]s certify", h.policies.Current().Host, h.csr(), h.instance.Program("flor-provider"))
}

// trusted refuses an issuing certificate that hosts would refuse: under the policy read
// at the start, and the one that has come since.
func (h *host) trusted() error {
	a, err := h.authority()
	if err != nil {
		return err
	}
	if cert.Trusted(a, h.policies.Current()) == nil {
		return nil
	}
	if h.policies, err = server.OpenPolicies(h.Policy, h.log); err != nil {
		return err
	}
	return cert.Trusted(a, h.policies.Current())
}

// delivered waits until activation has delivered this provider's SVID.
func (h *host) delivered(ctx context.Context) error {
	return h.wait(ctx, "this provider's SVID", func() error {
		if _, err := h.identity(); err != nil {
			return fmt.Errorf("%w: flor activate delivers it", err)
		}
		return nil
	})
}

// identity reads the delivered SVID.
func (h *host) identity() (*tls.Certificate, error) {
	svid, err := florete.LoadSVID(h.Identity, h.policies.Current().Provider.ID)
	if err != nil {
		return nil, err
	}
	if _, err := private.ReadFile(filepath.Join(florete.Current(h.Identity), florete.FileKey)); err != nil {
		return nil, err
	}
	return &svid.Cert, nil
}

// wait polls until there is what it waits for, and says so when the reason changes.
func (h *host) wait(ctx context.Context, what string, there func() error) error {
	tick := time.NewTicker(poll)
	defer tick.Stop()
	said := ""
	for {
		err := there()
		if err == nil {
			return nil
		}
		if err.Error() != said {
			said = err.Error()
			h.log.Warn("waiting for "+what, "reason", said)
			ready("waiting for " + what + ": " + said)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
