//go:build !cgo

package pkcs11

import (
	"crypto"
	"errors"
)

var errNoCgo = errors.New("this program is built without cgo, and modules of PKCS #11 are C libraries: CGO_ENABLED=1 go build ./nix/cmd/florctl, or in Nix the package florctl-pkcs11")

// Token stands for a token in a build without cgo.
type Token struct{}

// Open returns an error, because this build has no cgo.
func Open(URI, func(what, instead string) (string, error)) (*Token, error) { return nil, errNoCgo }

// Close, Key and Make are of no token.
func (*Token) Close() error                 { return nil }
func (*Token) Key() (crypto.Signer, error)  { return nil, errNoCgo }
func (*Token) Make() (crypto.Signer, error) { return nil, errNoCgo }
