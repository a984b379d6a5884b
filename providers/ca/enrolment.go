package ca

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"filippo.io/age"

	"github.com/florete/florete/internal/atomicfile"
)

// These are the files in a Dir that contain the operator's enrolment certificate, and the record of
// the certificates issued with it.
const (
	EnrolmentCertificate = "enrol.crt"
	EnrolmentKey         = "enrol.key"
	EnrolmentRecord      = "issued.jsonl"
)

// SignEnrolment signs an enrolment certificate for an operator's public key. It is a CA certificate
// with which the operator can issue SVIDs directly, without a provider.
func (a *Authority) SignEnrolment(key crypto.PublicKey, lifetime time.Duration, now time.Time) (*x509.Certificate, error) {
	name, err := domain(a.TrustDomain())
	if err != nil {
		return nil, err
	}
	t := authority(name, "enrolment", now.Add(lifetime))
	t.MaxPathLenZero = true
	return create(t, a.Certificate, key, a.Key, now)
}

// Enrolment creates an operator's enrolment certificate and its private key, and stores both in the
// directory. If there are recipients, the stored key is encrypted to them with age. If the
// directory already has an enrolment certificate, Enrolment replaces only the certificate. It keeps
// the key, and does not have to decrypt it.
func (d Dir) Enrolment(root *Authority, lifetime time.Duration, now time.Time, to ...age.Recipient) (*x509.Certificate, error) {
	held, err := d.certificate(EnrolmentCertificate)
	if err != nil {
		return nil, err
	}
	var key crypto.PublicKey
	if held != nil {
		if _, err := os.Lstat(d.Path(EnrolmentKey)); err != nil {
			return nil, fmt.Errorf("%w: %s is of that key: restore it, or remove the certificate for another key", err, d.Path(EnrolmentCertificate))
		}
		key = held.PublicKey
	} else {
		// A key without a certificate was left by an interrupted call. It is replaced.
		private, err := NewKey()
		if err != nil {
			return nil, err
		}
		if err := SaveKey(d.Path(EnrolmentKey), private, to...); err != nil {
			return nil, err
		}
		key = private.Public()
	}
	c, err := root.SignEnrolment(key, lifetime, now)
	if err != nil {
		return nil, err
	}
	return c, Save(d.Path(EnrolmentCertificate), EncodeCertificates(c))
}

// LoadEnrolment reads the operator's enrolment certificate and its key from the directory.
func (d Dir) LoadEnrolment(identities ...age.Identity) (*Authority, error) {
	a, err := Load(d.Path(EnrolmentCertificate), d.Path(EnrolmentKey), identities...)
	if errors.Is(err, fs.ErrNotExist) {
		err = fmt.Errorf("%w: florctl ca enrolment makes it, with the root's key", err)
	}
	return a, err
}

// Record appends a line to the file that lists all certificates issued with the enrolment key. The
// line is on disk when Record returns nil.
func (d Dir) Record(line []byte) error {
	path := d.Path(EnrolmentRecord)
	old, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return atomicfile.File(path, append(append(old, line...), '\n'), 0o600)
}
