package hostapi

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
)

// tokenPrefix is the beginning of every join token, so that secret scanners can find tokens.
const tokenPrefix = "florete-join-v1"

// JoinToken permits a device to request its admission to a cluster. It contains a signing key, and
// the name of the provider host that accepts it. The signing key is never sent to the provider,
// which receives the public key and stores only a hash of it.
type JoinToken struct {
	Provider string // name of the provider's host
	Key      ed25519.PrivateKey
}

// NewJoinToken generates a join token that the config provider on the named host accepts.
func NewJoinToken(provider string) (JoinToken, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return JoinToken{provider, key}, err
}

// String returns the text of the join token, which people can copy.
func (t JoinToken) String() string {
	return strings.Join([]string{tokenPrefix, t.Provider, base64.RawURLEncoding.EncodeToString(t.Key.Seed())}, ".")
}

// ParseJoinToken parses the text of a join token. Errors never contain the token.
func ParseJoinToken(text string) (JoinToken, error) {
	part := strings.Split(strings.TrimSpace(text), ".")
	if len(part) != 3 || part[0] != tokenPrefix || part[1] == "" {
		return JoinToken{}, errors.New("join token: want what florctl join token create prints, " + tokenPrefix + ".PROVIDER.…, whole")
	}
	seed, err := base64.RawURLEncoding.Strict().DecodeString(part[2])
	if err != nil || len(seed) != ed25519.SeedSize {
		return JoinToken{}, errors.New("join token: cut short or changed: copy what florctl join token create printed")
	}
	return JoinToken{part[1], ed25519.NewKeyFromSeed(seed)}, nil
}

// Secret returns the private key of the join token in Nix format.
func (t JoinToken) Secret() (signature.SecretKey, error) {
	return signature.LoadSecretKey("token:" + base64.StdEncoding.EncodeToString(t.Key))
}

// Public returns the public key of the join token in Nix format.
func (t JoinToken) Public() string {
	return "token:" + base64.StdEncoding.EncodeToString(t.Key.Public().(ed25519.PublicKey))
}
