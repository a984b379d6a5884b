//go:build !cgo

package authority

import (
	"crypto"
	"errors"
)

var errNoCgo = errors.New("this program is built without cgo, and modules of PKCS #11 are C libraries: CGO_ENABLED=1 go build ./nix/cmd/florctl, or in Nix the package florctl-pkcs11")

// Token is a PKCS #11 token. This build has no cgo, which PKCS #11 needs, so there are no usable
// tokens.
type Token struct{}

// OpenToken always returns an error, because PKCS #11 modules need cgo and this build has none.
func OpenToken(TokenURI, func(what, instead string) (string, error)) (*Token, error) {
	return nil, errNoCgo
}

// Close does nothing, and the methods Key and Make return an error, because a build without cgo
// cannot use tokens.
func (*Token) Close() error                 { return nil }
func (*Token) Key() (crypto.Signer, error)  { return nil, errNoCgo }
func (*Token) Make() (crypto.Signer, error) { return nil, errNoCgo }
