package kit

import (
	"crypto/ed25519"
	"encoding/pem"
	"os"
	"strings"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"golang.org/x/crypto/ssh"
)

// NewHostKey generates an SSH host key.
func NewHostKey() ssh.Signer { return must(ssh.NewSignerFromKey(newEd25519())) }

// WriteHostKey generates an Ed25519 SSH host key, writes the private key to a file, and returns the
// public key.
func WriteHostKey(path string) ssh.PublicKey {
	key := newEd25519()
	check(os.WriteFile(path, pem.EncodeToMemory(must(ssh.MarshalPrivateKey(key, ""))), 0o600))
	return must(ssh.NewPublicKey(key.Public()))
}

// Authorized returns a public SSH key in the form of authorized_keys, without a comment or a
// newline. Documents contain keys in this form.
func Authorized(key ssh.PublicKey) string {
	return strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key)))
}

// SigningKey generates a key with the given name for signing documents.
func SigningKey(name string) signature.SecretKey {
	secret, _, err := signature.GenerateKeypair(name, nil)
	return must(secret, err)
}

func newEd25519() ed25519.PrivateKey {
	_, key, err := ed25519.GenerateKey(nil)
	return must(key, err)
}
