//go:build cgo

package authority

import (
	"cmp"
	"crypto"
	"crypto/elliptic"
	"crypto/rand"
	"errors"
	"fmt"

	"github.com/ThalesGroup/crypto11"
	"github.com/miekg/pkcs11"

	"github.com/florete/florete/internal/pubkey"
)

// Token is an unlocked PKCS #11 token, such as a smart card, a USB key or an HSM. Close it after
// use.
type Token struct {
	uri     TokenURI
	context *crypto11.Context
}

// OpenToken unlocks the token that the URI names. The PIN is in the file that the URI names. If the
// URI names no file, OpenToken calls typed to ask the user for the PIN. The second argument of
// typed tells the user what to do if there is no terminal.
func OpenToken(u TokenURI, typed func(what, instead string) (string, error)) (*Token, error) {
	pin, err := u.pin(typed)
	if err != nil {
		return nil, err
	}
	module := cmp.Or(u.Module, TokenModule)
	c, err := crypto11.Configure(&crypto11.Config{Path: module, TokenLabel: u.Token, TokenSerial: u.Serial, Pin: pin})
	if err == nil {
		return &Token{u, c}, nil
	}
	remedy := "see that it is plugged in, and that module-path=FILE of the URI names its module: pkcs11-tool --list-token-slots --module " + module
	switch code := pkcs11.Error(0); {
	case errors.As(err, &code) && code == pkcs11.CKR_PIN_INCORRECT:
		remedy = "it locks itself after a few wrong PINs: see that this is its PIN"
	case errors.As(err, &code) && code == pkcs11.CKR_PIN_LOCKED:
		remedy = "its security officer unlocks it"
	}
	return nil, fmt.Errorf("token %s in module %s: %w: %s", u.name(), module, err, remedy)
}

// Close locks the token. Keys from the token can no longer sign.
func (t *Token) Close() error { return t.context.Close() }

// Key returns the private key that the URI names. If the token has no such key, Key returns nil. If
// several keys match, it returns an error.
func (t *Token) Key() (crypto.Signer, error) {
	found, err := t.context.FindKeyPairs([]byte(t.uri.ID), []byte(t.uri.Object))
	switch {
	case err != nil:
		return nil, fmt.Errorf("token %s: key %s: %w", t.uri.name(), t.uri.key(), err)
	case len(found) == 0:
		return nil, nil
	case len(found) > 1:
		return nil, fmt.Errorf("token %s: %d keys %s: name one of them by its id in the URI too", t.uri.name(), len(found), t.uri.key())
	}
	if err := pubkey.Check(found[0].Public()); err != nil {
		return nil, fmt.Errorf("token %s: key %s: %w", t.uri.name(), t.uri.key(), err)
	}
	return found[0], nil
}

// Make generates a private key, ECDSA on P-256, on the token, with the label and ID in the URI. The
// key cannot be read from the token.
func (t *Token) Make() (crypto.Signer, error) {
	id, label := []byte(t.uri.ID), []byte(t.uri.Object)
	if len(id) == 0 { // both halves of a key are found by it
		id = make([]byte, 16)
		_, _ = rand.Read(id)
	}
	if len(label) == 0 {
		label = []byte("florete")
	}
	key, err := t.context.GenerateECDSAKeyPairWithLabel(id, label, elliptic.P256())
	if err != nil {
		return nil, fmt.Errorf("token %s: making key %s: %w", t.uri.name(), t.uri.key(), err)
	}
	return key, nil
}
