package ca

import (
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Stage is the stage that the rotation of a root has reached.
type Stage string

// A Prepared root signs nothing yet. An Activated root signs, and the files of the former root are
// kept until no host trusts that root.
const (
	Steady    Stage = "steady" // no rotation is under way
	Prepared  Stage = "prepared"
	Activated Stage = "activated"
)

// Dir is the directory with the certificates and private keys of a trust domain's root. The files
// ca.* belong to the root that is in use. During a rotation, which replaces the root by a new one,
// the directory also contains the files of the other root. The files that exist tell how far the
// rotation has come:
//
//	steady     ca.crt   ca.key
//	prepared   ca.crt   ca.key   next.crt next.key
//	activated  ca.crt   ca.key   old.crt  old.key     what were next.* and ca.*
//
// If a step of a rotation was interrupted, repeat it.
type Dir string

// Rotation describes how far the replacement of a root by a new one has come. Next and Former are
// nil in the stages that do not have them.
type Rotation struct {
	Stage        Stage
	Active       *x509.Certificate
	Next, Former *x509.Certificate
}

// Path returns the path of a file in the directory.
func (d Dir) Path(name string) string { return filepath.Join(string(d), name) }

// Read returns the certificates in the directory, and tells how far a rotation has come. If the
// directory contains no root, it returns an error.
func (d Dir) Read() (r Rotation, err error) {
	r.Stage = Steady
	if r.Next, err = d.certificate("next.crt"); err != nil {
		return r, err
	}
	if r.Former, err = d.certificate("old.crt"); err != nil {
		return r, err
	}
	switch {
	case r.Next != nil:
		r.Stage = Prepared
		if r.Former != nil { // an activation was interrupted
			r.Active, r.Former = r.Former, nil
			return r, nil
		}
	case r.Former != nil:
		r.Stage = Activated
	}
	if r.Active, err = d.certificate("ca.crt"); err == nil && r.Active == nil {
		err = fmt.Errorf("%s: no ca.crt in it: name the directory that florctl ca init made", d)
	}
	return r, err
}

// certificate reads a root in the directory, or returns nil if it is absent.
func (d Dir) certificate(name string) (*x509.Certificate, error) {
	b, err := os.ReadFile(d.Path(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseAuthority(d.Path(name), b, ofDomain)
}

// Prepare begins a rotation by storing the certificate of the next root. The key of the next root
// must already be in next.key.
func (d Dir) Prepare(root *x509.Certificate) error {
	return Save(d.Path("next.crt"), EncodeCertificates(root))
}

// Activate makes the next root the current one, so that it signs certificates from now on. The
// files of the former root are renamed to old.*.
func (d Dir) Activate() error {
	for _, m := range [][2]string{{"ca.key", "old.key"}, {"ca.crt", "old.crt"}, {"next.key", "ca.key"}, {"next.crt", "ca.crt"}} {
		// If old.* exists, an interrupted activation has moved it. If ca.* exists, it must be
		// replaced.
		if m[1] == "old.key" || m[1] == "old.crt" {
			if _, err := os.Lstat(d.Path(m[1])); err == nil {
				continue
			}
		}
		err := os.Rename(d.Path(m[0]), d.Path(m[1]))
		if errors.Is(err, fs.ErrNotExist) && m[0] == "next.key" {
			continue
		}
		if err == nil {
			err = d.sync()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Retire ends a rotation by deleting the key and the certificate of the former root. It does
// nothing if they are already deleted.
func (d Dir) Retire() error {
	for _, name := range []string{"old.key", "old.crt"} {
		if err := os.Remove(d.Path(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := d.sync(); err != nil {
			return err
		}
	}
	return nil
}

func (d Dir) sync() error {
	f, err := os.Open(string(d))
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}
