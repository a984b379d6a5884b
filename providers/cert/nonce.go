package cert

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"errors"
	"fmt"
	"time"

	"github.com/florete/florete/internal/spiffe"
)

// nonceLife is the time for which a nonce is valid.
const nonceLife = 60 * time.Second

// head is the length of a nonce before its HMAC. It consists of the time in Unix milliseconds and
// random bits.
const head = 8 + 16

// nonces makes and checks nonces with a secret key.
type nonces struct{ key []byte }

// make returns a nonce for proofs to a provider. From the time now on, the method check accepts the
// nonce.
func (n nonces) make(provider spiffe.ID, now time.Time) string {
	b := make([]byte, head, head+sha256.Size)
	binary.BigEndian.PutUint64(b, uint64(now.UnixMilli()))
	rand.Read(b[8:])
	return base64.RawURLEncoding.EncodeToString(n.mac(b, provider))
}

// mac appends an HMAC to the head b of a nonce. The HMAC also covers the provider's ID.
func (n nonces) mac(b []byte, provider spiffe.ID) []byte {
	h := hmac.New(sha256.New, n.key)
	h.Write(b)
	h.Write([]byte(provider.String()))
	return h.Sum(b)
}

func (n nonces) check(nonce string, provider spiffe.ID, now time.Time) error {
	b, err := base64.RawURLEncoding.Strict().DecodeString(nonce)
	// The decoder skips line breaks. A nonce in two spellings would count as two nonces in the
	// record of used ones.
	if err != nil || len(b) != head+sha256.Size || base64.RawURLEncoding.EncodeToString(b) != nonce {
		return errors.New("not made by a provider")
	}
	if !hmac.Equal(n.mac(b[:head:head], provider), b) {
		return fmt.Errorf("not made by %s", provider)
	}
	age := now.Sub(time.UnixMilli(int64(binary.BigEndian.Uint64(b))))
	if age > nonceLife || age < -nonceLife {
		return fmt.Errorf("made %s ago, want at most %s", age.Round(time.Second), nonceLife)
	}
	return nil
}
