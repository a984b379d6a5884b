package main

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"

	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/pkcs11"
	"github.com/florete/florete/providers/replace"
	"github.com/florete/florete/providers/secretfile"
)

// makeRoot makes a root, and its key in a file, or where the file says that it is. The key is
// not that of the present root. kept is how the key is kept.
func (s *sealing) makeRoot(trustDomain, keyFile string, present *x509.Certificate) (root *x509.Certificate, kept string, err error) {
	if s.token != "" {
		return s.rootOnToken(trustDomain, keyFile, present)
	}
	a, err := ca.NewRoot(trustDomain, time.Now())
	if err != nil {
		return nil, "", err
	}
	to, err := s.recipients(keyFile)
	if err != nil {
		return nil, "", err
	}
	if err := os.MkdirAll(filepath.Dir(keyFile), 0o755); err != nil {
		return nil, "", err
	}
	if kept = "keep it offline"; len(to) > 0 {
		kept = "sealed with age, keep it offline"
	}
	return a.Certificate, kept, ca.SaveKey(keyFile, a.Key, to...)
}

func (s *sealing) rootOnToken(trustDomain, keyFile string, present *x509.Certificate) (root *x509.Certificate, kept string, err error) {
	u, err := pkcs11.Parse(s.token)
	if err != nil {
		return nil, "", fmt.Errorf("--pkcs11: %w", err)
	}
	t, err := pkcs11.Open(u, prompt)
	if err != nil {
		return nil, "", err
	}
	defer t.Close()
	kept = "which was there"
	a, err := ca.RootOf(trustDomain, func() (crypto.Signer, error) {
		key, err := t.Key()
		switch {
		case err != nil:
			return nil, err
		case key == nil:
			kept = "made there"
			return t.Make()
		case present != nil && sameKey(present, key):
			return nil, fmt.Errorf("--pkcs11: the key of the present root: name another object, for which the token makes a key")
		}
		return key, nil
	}, time.Now())
	if err != nil {
		return nil, "", err
	}
	if err := os.MkdirAll(filepath.Dir(keyFile), 0o755); err != nil {
		return nil, "", err
	}
	return a.Certificate, "on the token, " + kept, replace.File(keyFile, []byte(u.String()+"\n"), 0o600)
}

func sameKey(c *x509.Certificate, key crypto.Signer) bool {
	public, ok := c.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(key.Public())
}

// loadRoot is a root with its key, which signs until done is called.
func loadRoot(certificate, keyFile string, open []age.Identity) (root *ca.Authority, done func(), err error) {
	u, err := onToken(keyFile)
	if err != nil {
		return nil, nil, err
	}
	if u == nil {
		root, err = ca.Load(certificate, keyFile, open...)
		return root, func() {}, err
	}
	t, err := pkcs11.Open(*u, prompt)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	done = func() { _ = t.Close() }
	key, err := t.Key()
	if err == nil && key == nil {
		err = fmt.Errorf("not on the token: plug in the one that has it")
	}
	if err == nil {
		root, err = ca.LoadWith(certificate, key, keyFile)
	}
	if err != nil {
		done()
		return nil, nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	return root, done, nil
}

// onToken is the URI that a key file has in a key's place, nil for none.
func onToken(keyFile string) (*pkcs11.URI, error) {
	b, err := secretfile.ReadFile(keyFile)
	if err != nil || !pkcs11.Is(b) {
		return nil, err
	}
	u, err := pkcs11.Parse(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	return &u, nil
}
