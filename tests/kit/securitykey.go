package kit

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"io"
	"math/big"

	"golang.org/x/crypto/ssh"
)

// SecurityKey signs like a FIDO authenticator (OpenSSH PROTOCOL.u2f). The person at it touches it
// for each signature, unless Untouched is true.
type SecurityKey struct {
	Untouched bool
	key       crypto.Signer
	public    ssh.PublicKey
}

const application = "ssh:"

// NewSecurityKey generates a key of type sk-ssh-ed25519@openssh.com.
func NewSecurityKey() *SecurityKey {
	key := newEd25519()
	return &SecurityKey{key: key, public: must(ssh.ParsePublicKey(ssh.Marshal(struct {
		Type        string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKED25519, key.Public().(ed25519.PublicKey), application})))}
}

// NewECDSASecurityKey generates a key of type sk-ecdsa-sha2-nistp256@openssh.com.
func NewECDSASecurityKey() *SecurityKey {
	key := must(ecdsa.GenerateKey(elliptic.P256(), rand.Reader))
	return &SecurityKey{key: key, public: must(ssh.ParsePublicKey(ssh.Marshal(struct {
		Type, Curve string
		Key         []byte
		Application string
	}{ssh.KeyAlgoSKECDSA256, "nistp256", must(key.PublicKey.Bytes()), application})))}
}

// PublicKey returns the public key.
func (k *SecurityKey) PublicKey() ssh.PublicKey { return k.public }

// Sign signs data.
func (k *SecurityKey) Sign(random io.Reader, data []byte) (*ssh.Signature, error) {
	flags := byte(1) // the person is present
	if k.Untouched {
		flags = 0
	}
	rest := []byte{flags, 0, 0, 0, 7} // 7 is the number of signatures so far
	of, digest := sha256.Sum256([]byte(application)), sha256.Sum256(data)
	text := append(append(of[:], rest...), digest[:]...)
	s := &ssh.Signature{Format: k.public.Type(), Rest: rest}
	if key, ok := k.key.(*ecdsa.PrivateKey); ok {
		hash := sha256.Sum256(text)
		a, b, err := ecdsa.Sign(random, key, hash[:])
		if err != nil {
			return nil, err
		}
		s.Blob = ssh.Marshal(struct{ R, S *big.Int }{a, b})
		return s, nil
	}
	var err error
	s.Blob, err = k.key.Sign(random, text, crypto.Hash(0))
	return s, err
}
