package pubkey

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rsa"
	"encoding/hex"
	"errors"
	"fmt"
)

// Check returns an error if the public key of a certificate is weak, or if verifying its signatures
// is expensive.
func Check(key crypto.PublicKey) error {
	const want = "want ECDSA P-256 or P-384, Ed25519, or RSA of 2048 to 4096 bits"
	switch k := key.(type) {
	case ed25519.PublicKey:
		return CheckEd25519(k)
	case *ecdsa.PublicKey:
		if k.Curve != elliptic.P256() && k.Curve != elliptic.P384() {
			return fmt.Errorf("key is ECDSA %s, %s", k.Params().Name, want)
		}
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n < 2048 || n > 4096 {
			return fmt.Errorf("key is RSA of %d bits, %s", n, want)
		}
	default:
		return fmt.Errorf("key is %T, %s", key, want)
	}
	return nil
}

// CheckHost returns an error if an SSH host key is so weak that others may be able to sign with it.
func CheckHost(key crypto.PublicKey) error {
	switch k := key.(type) {
	case ed25519.PublicKey:
		return CheckEd25519(k)
	case *rsa.PublicKey:
		if n := k.N.BitLen(); n < 2048 {
			return fmt.Errorf("RSA key of %d bits, want at least 2048, or better an Ed25519 key", n)
		}
	}
	return nil
}

// smallOrder contains the y coordinates of the points of order 1, 2, 4 and 8 of Ed25519, in little
// endian without the sign bit. Anybody can create signatures for a key that is such a point.
var smallOrder = [][]byte{
	unhex("0100000000000000000000000000000000000000000000000000000000000000"),
	unhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
	unhex("0000000000000000000000000000000000000000000000000000000000000000"),
	unhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"),
	unhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"),
}

// CheckEd25519 returns an error for a key of small order, because anybody can create signatures for
// it. It also returns an error for a key that is not canonically encoded (RFC 8032, section 5.1.3),
// because a key must not have two encodings.
func CheckEd25519(key ed25519.PublicKey) error {
	y := bytes.Clone(key)
	if len(y) != ed25519.PublicKeySize {
		return fmt.Errorf("Ed25519 key of %d bytes, want %d", len(y), ed25519.PublicKeySize)
	}
	y[31] &= 0x7f
	if y[31] == 0x7f && y[0] >= 0xed && bytes.Count(y[1:31], []byte{0xff}) == 30 {
		return errors.New("Ed25519 key whose encoding is not canonical: make a new one")
	}
	for _, p := range smallOrder {
		if bytes.Equal(y, p) {
			return errors.New("Ed25519 key of small order, for which anybody can sign: make a new one")
		}
	}
	return nil
}

func unhex(s string) []byte {
	b, err := hex.DecodeString(s)
	if err != nil {
		panic(err)
	}
	return b
}
