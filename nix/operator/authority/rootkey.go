package authority

import (
	"crypto"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"filippo.io/age"
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/agefile"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/providers/ca"
)

// RootKey contains an operator's choice of how to store the private key of a root: in a plain file,
// in a file encrypted with age, or on a PKCS #11 token.
type RootKey struct {
	*agefile.To
	token string // URI of the key
}

// RootKeyFlags adds flags to a command with which an operator chooses how to store the private key
// of a root. They are the flags of agefile.Flags, and --pkcs11.
func RootKeyFlags(cmd *cobra.Command) *RootKey {
	how := &RootKey{To: agefile.Flags(cmd, "the key")}
	cmd.Flags().StringVar(&how.token, "pkcs11", "", "keep the key on the PKCS #11 token of this `URI` (RFC 7512), such as pkcs11:token=LABEL;object=LABEL?pin-source=FILE&module-path=FILE. The token generates the key if it has none. The default module is "+TokenModule+". Without pin-source, the PIN is read from the terminal")
	return how
}

// Make creates the root of a new trust domain and an enrolment certificate, with their private
// keys, and stores them in dir. If dir already contains a root, it returns an error. It also
// returns a text for the operator, which says where the private key of the root is stored.
func Make(dir ca.Dir, trustDomain string, how *RootKey) (root, enrolment *x509.Certificate, kept string, err error) {
	crt, key := dir.Path("ca.crt"), dir.Path("ca.key")
	for _, path := range []string{crt, key} {
		if exists(path) {
			return nil, nil, "", fmt.Errorf("%s: already exists: a root is created once, choose another directory", path)
		}
	}
	if err := secretfile.RefuseTree(key); err != nil {
		return nil, nil, "", fmt.Errorf("%w, such as --out ~/%s", err, trustDomain)
	}
	kept, err = how.makeRoot(trustDomain, key, nil, func(a *ca.Authority, to []age.Recipient) (err error) {
		root = a.Certificate
		if err := ca.Save(crt, ca.EncodeCertificates(root)); err != nil {
			return err
		}
		enrolment, err = dir.Enrolment(a, ca.IssuingLifetime, time.Now(), to...)
		return err
	})
	return root, enrolment, kept, err
}

// makeRoot creates a root with a new private key. The key is stored in the file keyFile, or on the
// PKCS #11 token that this file names. While the key can sign, makeRoot calls the function use with
// the root and with the age recipients for which other keys are encrypted. It returns a description
// of where the key is stored.
func (how *RootKey) makeRoot(trustDomain, keyFile string, present *x509.Certificate, use func(*ca.Authority, []age.Recipient) error) (kept string, err error) {
	to, err := how.Recipients(keyFile)
	if err != nil {
		return "", err
	}
	if how.token != "" {
		return how.rootOnToken(trustDomain, keyFile, present, func(a *ca.Authority) error { return use(a, to) })
	}
	a, err := ca.NewRoot(trustDomain, time.Now())
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(keyFile), 0o755); err != nil {
		return "", err
	}
	if err := ca.SaveKey(keyFile, a.Key, to...); err != nil {
		return "", err
	}
	if kept = "keep it offline"; len(to) > 0 {
		kept = "sealed with age, keep it offline"
	}
	return kept, use(a, to)
}

func (how *RootKey) rootOnToken(trustDomain, keyFile string, present *x509.Certificate, use func(*ca.Authority) error) (kept string, err error) {
	u, err := ParseTokenURI(how.token)
	if err != nil {
		return "", fmt.Errorf("--pkcs11: %w", err)
	}
	t, err := OpenToken(u, agefile.Prompt)
	if err != nil {
		return "", err
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
			return nil, fmt.Errorf("--pkcs11: found the key of the present root, want another object: the token creates a key for it")
		}
		return key, nil
	}, time.Now())
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(keyFile), 0o755); err != nil {
		return "", err
	}
	if err := atomicfile.File(keyFile, []byte(u.String()+"\n"), 0o600); err != nil {
		return "", err
	}
	return "on the token, " + kept, use(a)
}

func sameKey(c *x509.Certificate, key crypto.Signer) bool {
	public, ok := c.PublicKey.(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(key.Public())
}

// Opening is a function that returns the age identities with which to decrypt a file. The function
// agefile.Opening returns one.
type Opening func(file string) ([]age.Identity, error)

// load returns a root with its private key. The root can sign until the caller calls the function
// done.
func load(certificate, keyFile string, open Opening) (root *ca.Authority, done func(), err error) {
	identities, err := open(keyFile)
	if err != nil {
		return nil, nil, err
	}
	u, err := onToken(keyFile)
	if err != nil {
		return nil, nil, err
	}
	if u == nil {
		root, err = ca.Load(certificate, keyFile, identities...)
		return root, func() {}, err
	}
	t, err := OpenToken(*u, agefile.Prompt)
	if err != nil {
		return nil, nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	done = func() { _ = t.Close() }
	key, err := t.Key()
	if err == nil && key == nil {
		err = fmt.Errorf("the key is not on the token: plug in the token that has the key")
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

// onToken returns the URI of a PKCS #11 token if the key file contains one, and nil otherwise.
func onToken(keyFile string) (*TokenURI, error) {
	b, err := secretfile.ReadFile(keyFile)
	if err != nil || !IsTokenURI(b) {
		return nil, err
	}
	u, err := ParseTokenURI(string(b))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", keyFile, err)
	}
	return &u, nil
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
