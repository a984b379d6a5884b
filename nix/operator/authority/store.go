package authority

import (
	"crypto"
	"crypto/x509"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/ca"
)

// MakeStore creates the CA for the state store that provider hosts share, in the files store-ca.crt
// and store-ca.key in dir. If one of the files exists, it returns an error.
func MakeStore(dir, trustDomain string) (*x509.Certificate, error) {
	for _, name := range []string{"store-ca.crt", "store-ca.key"} {
		if path := filepath.Join(dir, name); exists(path) {
			return nil, fmt.Errorf("%s: already exists: the CA is created once, choose another directory", path)
		}
	}
	a, err := ca.NewStore(trustDomain, time.Now())
	if err != nil {
		return nil, err
	}
	return a.Certificate, pair(dir, "store-ca", a.Certificate, a.Key)
}

// StoreHost is a host that uses the shared state store. If it has addresses, a server of the store
// runs on it.
type StoreHost struct {
	Host      string
	Addresses []string
	Lifetime  time.Duration // maximum lifetime of its certificates
}

// Issue creates the keys and certificates with which the host uses the shared state store, in dir,
// and prints a summary to w. The arguments certificate and key are the paths of the certificate and
// the key of the store's CA.
func (h StoreHost) Issue(certificate, key, dir string, w io.Writer) error {
	if err := checkLifetime(h.Lifetime); err != nil {
		return err
	}
	if err := secretfile.RefuseTree(key); err != nil {
		return err
	}
	if _, err := spiffe.ParseID("spiffe://demo.flor/node/" + h.Host); err != nil {
		return fmt.Errorf("host %q: want its name in the flake", h.Host)
	}
	a, err := ca.LoadStore(certificate, key)
	if err != nil {
		return err
	}
	now := time.Now()
	issue := func(name string, certify func(crypto.PublicKey) (*x509.Certificate, error)) error {
		k, err := ca.NewKey()
		if err != nil {
			return err
		}
		c, err := certify(k.Public())
		if err == nil {
			err = pair(dir, name, c, k)
		}
		if err == nil {
			fmt.Fprintf(w, "%s: %s of the store until %s\n", filepath.Join(dir, name+".crt"), name, c.NotAfter.Format(time.DateOnly))
		}
		return err
	}
	err = issue("client", func(k crypto.PublicKey) (*x509.Certificate, error) {
		return a.IssueClient(k, h.Host, now.Add(h.Lifetime), now)
	})
	if err == nil && len(h.Addresses) > 0 {
		all := append([]string{"localhost", net.IPv4(127, 0, 0, 1).String(), net.IPv6loopback.String()}, h.Addresses...)
		err = issue("member", func(k crypto.PublicKey) (*x509.Certificate, error) {
			return a.IssueMember(k, all, now.Add(h.Lifetime), now)
		})
	}
	if err != nil {
		return err
	}
	return ca.Save(filepath.Join(dir, "ca.crt"), ca.EncodeCertificates(a.Certificate))
}

// pair writes a private key and its certificate. It refuses to write the key into a git work tree.
func pair(dir, name string, c *x509.Certificate, key crypto.Signer) error {
	path := filepath.Join(dir, name+".key")
	if err := secretfile.RefuseTree(path); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	if err := ca.SaveKey(path, key); err != nil {
		return err
	}
	return ca.Save(filepath.Join(dir, name+".crt"), ca.EncodeCertificates(c))
}
