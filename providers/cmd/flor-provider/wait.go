package main

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"florete"
	"florete/providers/ca"
	"florete/providers/private"
	"florete/providers/settings"

	"github.com/spiffe/go-spiffe/v2/svid/x509svid"
)

func issuingKey(s *settings.Settings) string { return filepath.Join(s.State, "issuing.key") }

// authority reads the issuing CA.
func (h *host) authority() (*ca.Authority, error) {
	return ca.Load(h.Cert.IssuingCertificate, issuingKey(h.Settings))
}

// issuing makes the issuing key and its certificate request, and waits until a
// person has signed that.
func (h *host) issuing(ctx context.Context) error {
	csr := filepath.Join(h.State, "issuing.csr")
	if err := ca.Request(h.policies.Current().TrustDomain, issuingKey(h.Settings), csr); err != nil {
		return err
	}
	return h.wait(ctx, "the issuing certificate", func() error {
		if _, err := h.authority(); err != nil {
			return fmt.Errorf("%w: where the root's key is, run: ssh %s cat %s | florctl ca sign | ssh %[2]s %[4]s certify", err, h.policies.Current().Host, csr, h.membership.Program("flor-provider"))
		}
		return nil
	})
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

// identity reads the delivered SVID, both files of one generation.
func (h *host) identity() (*tls.Certificate, error) {
	dir, err := florete.OpenCurrent(h.Identity)
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	svid, err := dir.ReadFile(florete.FileSVID)
	if err != nil {
		return nil, err
	}
	f, err := dir.Open(florete.FileKey)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if err := private.Check(f); err != nil {
		return nil, err
	}
	key, err := io.ReadAll(f)
	if err != nil {
		return nil, err
	}
	c, err := tls.X509KeyPair(svid, key)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Identity, err)
	}
	id, err := x509svid.IDFromCert(c.Leaf)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", h.Identity, err)
	}
	if want := h.policies.Current().Provider.ID; id.String() != want.String() {
		return nil, fmt.Errorf("%s: SVID of %s, this provider is %s: name the directory of the need for that", h.Identity, id, want)
	}
	return &c, nil
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
