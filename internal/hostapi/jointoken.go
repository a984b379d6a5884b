package hostapi

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
)

// tokenPrefix starts each token, so that scanners find those that lie about.
const tokenPrefix = "florete-join-v1"

// JoinToken is what admits a device to be approved: the config provider that has it on record,
// and a signing key. The key never leaves the machines where the token was typed: a provider
// has its public half alone, and stores the hash of that.
type JoinToken struct {
	Provider string // host name
	Key      ed25519.PrivateKey
}

// NewJoinToken makes one for a provider.
func NewJoinToken(provider string) (JoinToken, error) {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	return JoinToken{provider, key}, err
}

// String is the token as people carry it.
func (t JoinToken) String() string {
	return strings.Join([]string{tokenPrefix, t.Provider, base64.RawURLEncoding.EncodeToString(t.Key.Seed())}, ".")
}

// ParseJoinToken reads a token. The error does not have it.
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

// Secret is the token's key in Nix format.
func (t JoinToken) Secret() (signature.SecretKey, error) {
	return signature.LoadSecretKey("token:" + base64.StdEncoding.EncodeToString(t.Key))
}

// Public is its public half, in Nix format.
func (t JoinToken) Public() string {
	return "token:" + base64.StdEncoding.EncodeToString(t.Key.Public().(ed25519.PublicKey))
}
