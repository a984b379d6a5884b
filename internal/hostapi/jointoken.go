package hostapi

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
)

// tokenPrefix begins each token, so that secret scanners can find it.
const tokenPrefix = "florete-join-v1"

// JoinToken allows a device to request admission to a cluster. It contains a signing key, and the
// name of the config provider that has the token on record. The signing key never leaves the
// machines on which the token was typed. The provider receives only the public key, and stores only
// its hash.
type JoinToken struct {
	Provider string // host name
	Key      ed25519.PrivateKey
}

// NewJoinToken generates a join token for the config provider on a host.
func NewJoinToken(provider string) (JoinToken, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return JoinToken{provider, key}, err
}

// String returns the token as text that people can copy.
func (t JoinToken) String() string {
	return strings.Join([]string{tokenPrefix, t.Provider, base64.RawURLEncoding.EncodeToString(t.Key.Seed())}, ".")
}

// ParseJoinToken parses the text of a join token. Errors never contain the token.
func ParseJoinToken(text string) (JoinToken, error) {
	part := strings.Split(strings.TrimSpace(text), ".")
	if len(part) != 3 || part[0] != tokenPrefix || part[1] == "" {
		return JoinToken{}, errors.New("join token: want what florctl token create prints, " + tokenPrefix + ".PROVIDER.…, whole")
	}
	seed, err := base64.RawURLEncoding.Strict().DecodeString(part[2])
	if err != nil || len(seed) != ed25519.SeedSize {
		return JoinToken{}, errors.New("join token: cut short or changed: copy what florctl token create printed")
	}
	return JoinToken{part[1], ed25519.NewKeyFromSeed(seed)}, nil
}

// Secret returns the token's private key in Nix format.
func (t JoinToken) Secret() (signature.SecretKey, error) {
	return signature.LoadSecretKey("token:" + base64.StdEncoding.EncodeToString(t.Key))
}

// Public returns the token's public key in Nix format.
func (t JoinToken) Public() string {
	return "token:" + base64.StdEncoding.EncodeToString(t.Key.Public().(ed25519.PublicKey))
}
