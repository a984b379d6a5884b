package authority

import (
	"crypto/x509"
	"fmt"
	"io"
	"os"
	"time"

	"filippo.io/age"

	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/providers/ca"
)

func checkLifetime(d time.Duration) error {
	if d < time.Hour {
		return fmt.Errorf("--lifetime %s: want an hour at least, such as 2160h for 90 days", d)
	}
	return nil
}

// SignIssuing signs a provider's request for an issuing certificate with the key of the root. It
// returns the issuing certificate and the root's trust domain. The argument from is a description
// of the source of the request, for errors.
func SignIssuing(certificate, key string, open Opening, from string, request io.Reader, lifetime time.Duration) (trustDomain string, issuing *x509.Certificate, err error) {
	if err := checkLifetime(lifetime); err != nil {
		return "", nil, err
	}
	if _, err := os.Stat(key); err != nil {
		return "", nil, fmt.Errorf("root key: %w: name it with --ca-key, and its certificate with --ca-cert", err)
	}
	if err := secretfile.RefuseTree(key); err != nil {
		return "", nil, err
	}
	root, done, err := load(certificate, key, open)
	if err != nil {
		return "", nil, err
	}
	defer done()
	csr, err := io.ReadAll(request)
	if err != nil {
		return "", nil, err
	}
	if issuing, err = root.SignIssuing(csr, lifetime, time.Now()); err != nil {
		return "", nil, fmt.Errorf("%s: %w", from, err)
	}
	return root.TrustDomain(), issuing, nil
}

// SignEnrolment signs a new enrolment certificate with the key of the root in dir, and stores it in
// dir. With that certificate, operators issue identity files. SignEnrolment returns it and the
// root's trust domain.
func SignEnrolment(dir ca.Dir, open Opening, seal *agefile.To, lifetime time.Duration) (trustDomain string, c *x509.Certificate, err error) {
	if err := checkLifetime(lifetime); err != nil {
		return "", nil, err
	}
	if err := secretfile.RefuseTree(dir.Path(ca.EnrolmentKey)); err != nil {
		return "", nil, err
	}
	root, done, err := load(dir.Path("ca.crt"), dir.Path("ca.key"), open)
	if err != nil {
		return "", nil, err
	}
	defer done()
	to, err := seal.Recipients(dir.Path(ca.EnrolmentKey))
	if err == nil {
		err = sealedLikewise(dir, to)
	}
	if err == nil {
		c, err = dir.Enrolment(root, lifetime, time.Now(), to...)
	}
	return root.TrustDomain(), c, err
}

// sealedLikewise returns an error if the root's key is encrypted but a new key would not be.
func sealedLikewise(d ca.Dir, to []age.Recipient) error {
	sealed, err := ca.Sealed(d.Path("ca.key"))
	if err != nil || !sealed || len(to) > 0 {
		return err
	}
	if exists(d.Path(ca.EnrolmentCertificate)) {
		return nil // the existing key is used
	}
	return fmt.Errorf("%s is encrypted with age, but %s would not be: pass --seal-to RECIPIENT, --passphrase or --passphrase-file FILE", d.Path("ca.key"), d.Path(ca.EnrolmentKey))
}
