package hostapi_test

import (
	"bytes"
	"crypto"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/rsa"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/tests/kit"
)

// nobody forges signatures for a key of small order. Such a forgery needs no private key.
type nobody struct{ key ed25519.PublicKey }

func (n nobody) Public() crypto.PublicKey { return n.key }

func (n nobody) Sign(io.Reader, []byte, crypto.SignerOpts) ([]byte, error) {
	return append([]byte{1}, make([]byte, ed25519.SignatureSize-1)...), nil
}

// TestWeakHostKeys checks that a proof by a weak key is refused, although package sshsig accepts
// its signature.
func TestWeakHostKeys(t *testing.T) {
	short, err := rsa.GenerateKey(rand.Reader, 1024)
	if err != nil {
		t.Fatal(err)
	}
	good, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	for want, key := range map[string]crypto.Signer{
		"Ed25519 key of small order":            nobody{make([]byte, ed25519.PublicKeySize)},
		"RSA key of 1024 bits, want at least 2": short,
		"":                                      good,
	} {
		signer, err := ssh.NewSignerFromSigner(key)
		if err != nil {
			t.Fatal(err)
		}
		st := hostapi.Statement{Node: kit.ID("node/ursula"), Provider: provider}
		var proof *hostapi.Proof
		for i := 0; ; i++ { // a forged signature is valid for one message in four
			st.Nonce = fmt.Sprint(i)
			if proof, err = st.Sign(signer); err != nil {
				t.Fatal(err)
			}
			sig, err := sshsig.Unarmor([]byte(proof.Signature))
			if err != nil {
				t.Fatal(err)
			}
			if sshsig.Verify(bytes.NewReader(st.Bytes()), sig, signer.PublicKey(), sshsig.HashSHA512, hostapi.ProofNamespace) == nil {
				break
			}
		}
		err = st.Verify(proof, signer.PublicKey())
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %q", err, want)
		}
		if _, err := hostapi.ParseHostKey(string(ssh.MarshalAuthorizedKey(signer.PublicKey()))); (want == "") != (err == nil) {
			t.Errorf("read: got %v, want %q", err, want)
		}
	}
}
