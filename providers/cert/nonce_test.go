package cert

import (
	"encoding/base64"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
)

func TestNonce(t *testing.T) {
	n, other := nonces{[]byte("a key")}, nonces{[]byte("another")}
	p, q := kit.ProviderID("drhorrible", "cert"), kit.ProviderID("raishan", "cert")
	now := time.Unix(1_784_011_430, 0)
	nonce := n.make(p, now)
	if nonce == n.make(p, now) {
		t.Error("twice the same nonce")
	}
	for _, at := range []time.Duration{0, nonceLife, -nonceLife} {
		if err := n.check(nonce, p, now.Add(at)); err != nil {
			t.Errorf("after %s: %v", at, err)
		}
	}
	for want, err := range map[string]error{
		"made 1m1s ago, want at most 1m0s":  n.check(nonce, p, now.Add(nonceLife+time.Second)),
		"made -1m1s ago, want at most 1m0s": n.check(nonce, p, now.Add(-nonceLife-time.Second)),
		"not made by " + q.String():         n.check(nonce, q, now),
		"not made by " + p.String():         other.check(nonce, p, now),
		"not made by a provider":            n.check(nonce+"A", p, now),
	} {
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("got %v, want %s…", err, want)
		}
	}
}

// FuzzNonce checks that only the exact nonce is accepted.
func FuzzNonce(f *testing.F) {
	n, p := nonces{[]byte("a key")}, kit.ProviderID("drhorrible", "cert")
	// All fuzzing processes need the same nonce, so it does not come from make.
	now := time.UnixMilli(0)
	good := base64.RawURLEncoding.EncodeToString(n.mac(make([]byte, head), p))
	f.Add(good)
	f.Add(good + "=")
	f.Add("\n" + good)
	f.Add(good[:len(good)-1] + "B")
	f.Fuzz(func(t *testing.T, s string) {
		if err := n.check(s, p, now); err == nil && s != good {
			t.Fatalf("%q is taken for %q", s, good)
		}
	})
}
