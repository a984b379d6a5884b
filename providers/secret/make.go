package secret

import (
	"crypto/ecdh"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"

	"filippo.io/age"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/pubkey"
)

// generator makes secrets of one form.
type generator struct {
	// text returns a secret of the given length; nil for a key pair.
	text func(length int) string

	// pair returns the halves of a key pair, each in the form of the tool that reads it.
	pair func() (private, public string, err error)
}

var generators = map[string]generator{
	"age":       {pair: agePair},
	"hex":       {text: func(n int) string { return pick("0123456789abcdef", n) }},
	"password":  {text: func(n int) string { return pick(letters, n) }},
	"ssh":       {pair: sshPair},
	"wireguard": {pair: wireGuardPair},
}

// letters contains characters that need no quotes in a shell, in a URL or in a settings file.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"

// longest is the largest length of a secret. It is far above the limit in the language of
// topologies.
const longest = 4096

// pick draws n characters with equal probability.
func pick(from string, n int) string {
	var out strings.Builder
	bound := byte(256 / len(from) * len(from) % 256) // 0 where every byte will do
	for out.Len() < n {
		some := make([]byte, n)
		rand.Read(some)
		for _, b := range some {
			if (bound == 0 || b < bound) && out.Len() < n {
				out.WriteByte(from[int(b)%len(from)])
			}
		}
	}
	return out.String()
}

func agePair() (string, string, error) {
	identity, err := age.GenerateX25519Identity()
	if err != nil {
		return "", "", err
	}
	return identity.String() + "\n", identity.Recipient().String() + "\n", nil
}

func sshPair() (string, string, error) {
	secret, public, err := pubkey.NewSSH()
	if err != nil {
		return "", "", err
	}
	return string(secret), string(ssh.MarshalAuthorizedKey(public)), nil
}

// wireGuardPair returns a key pair in the form of wg genkey and wg pubkey.
func wireGuardPair() (string, string, error) {
	b := make([]byte, 32)
	rand.Read(b)
	b[0] &= 248
	b[31] = b[31]&127 | 64
	key, err := ecdh.X25519().NewPrivateKey(b)
	if err != nil {
		return "", "", err
	}
	return base64.StdEncoding.EncodeToString(b) + "\n", base64.StdEncoding.EncodeToString(key.PublicKey().Bytes()) + "\n", nil
}

// make makes a secret of the form that a spec describes. Only key pairs have a public half.
func (s spec) make() (private, public string, err error) {
	g := generators[s.Generate]
	if g.text != nil {
		return g.text(s.Length), "", nil
	}
	private, public, err = g.pair()
	if err != nil {
		err = fmt.Errorf("secret %s: %w", s.Secret, err)
	}
	return private, public, err
}
