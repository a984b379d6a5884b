package pubkey

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"

	"golang.org/x/crypto/ssh"
)

// NewSSH generates an Ed25519 key pair for SSH. The result secret is the private key in OpenSSH's
// PEM format.
func NewSSH() (secret []byte, public ssh.PublicKey, err error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, err
	}
	block, err := ssh.MarshalPrivateKey(key, "")
	if err != nil {
		return nil, nil, err
	}
	public, err = ssh.NewPublicKey(key.Public())
	return pem.EncodeToMemory(block), public, err
}
