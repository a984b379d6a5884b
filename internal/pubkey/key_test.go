package pubkey

import (
	"crypto/ed25519"
	"math/big"
	"slices"
	"testing"
)

// TestEd25519 checks that all encodings of points of small order are refused, whether canonical or
// not, and that no other keys are refused.
func TestEd25519(t *testing.T) {
	p := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), 255), big.NewInt(19))
	encode := func(y *big.Int, sign byte) ed25519.PublicKey {
		b := y.FillBytes(make([]byte, 32))
		slices.Reverse(b)
		b[31] |= sign << 7
		return b
	}
	eight, _ := new(big.Int).SetString("7a03ac9277fdc74ec6cc392cfa53202a0f67100d760b3cba4fd84d3d706a17c7", 16)
	small := []*big.Int{big.NewInt(0), big.NewInt(1), new(big.Int).Sub(p, big.NewInt(1)), eight, new(big.Int).Sub(p, eight)}
	for _, y := range small {
		for sign := range byte(2) {
			if err := CheckEd25519(encode(y, sign)); err == nil {
				t.Errorf("%x, sign %d, is accepted", y, sign)
			}
			for _, next := range []int64{-2, 2} { // not 1: beside 0 and -1 are others of small order
				near := new(big.Int).Add(y, big.NewInt(next))
				if near.Sign() > 0 && near.Cmp(p) < 0 {
					if err := CheckEd25519(encode(near, sign)); err != nil {
						t.Errorf("%x, sign %d: %v", near, sign, err)
					}
				}
			}
		}
	}
	for d := range int64(19) {
		for sign := range byte(2) {
			if err := CheckEd25519(encode(new(big.Int).Add(p, big.NewInt(d)), sign)); err == nil {
				t.Errorf("p + %d, sign %d, is accepted", d, sign)
			}
		}
	}
	if CheckEd25519(make([]byte, 31)) == nil {
		t.Error("31 bytes are accepted")
	}
}

// TestSmallOrderIsForged checks that a signature for each key of small order can be forged without
// a private key.
func TestSmallOrderIsForged(t *testing.T) {
	var points [][]byte // in the form of signatures
	for _, y := range smallOrder {
		for _, sign := range []byte{0, 0x80} {
			p := slices.Clone(y)
			p[31] |= sign
			points = append(points, p)
		}
	}
	for _, key := range points {
		if !forge(key, points) {
			t.Errorf("%x: nothing was forged, it is no point of small order", key)
		}
	}
}

func forge(key ed25519.PublicKey, points [][]byte) bool {
	for i := range byte(64) {
		for _, r := range points {
			if ed25519.Verify(key, []byte{i}, append(slices.Clone(r), make([]byte, 32)...)) {
				return true
			}
		}
	}
	return false
}
