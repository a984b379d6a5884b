package signers_test

import (
	"strings"
	"testing"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/tests/kit"
)

// TestThreshold checks how many signatures, and by which keys, are enough.
func TestThreshold(t *testing.T) {
	key := map[string]signature.SecretKey{}
	public := func(name string) string { return key[name].ToPublicKey().String() }
	for _, name := range []string{"a-1", "b-1", "c-1", "thief-1"} {
		key[name] = kit.SigningKey(name)
	}
	sign := func(text string, names ...string) string {
		var all []string
		for _, name := range names {
			sig, err := key[name].Sign(nil, text)
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, sig.String())
		}
		return strings.Join(all, " ")
	}
	_, alias, _ := strings.Cut(public("a-1"), ":")
	two := signers.Set{Keys: []string{public("a-1"), public("b-1"), public("c-1")}, Threshold: 2}
	one := two
	one.Threshold = 0
	named := signers.Set{Keys: []string{public("a-1"), "b-1:" + alias}, Threshold: 2}
	for name, c := range map[string]struct {
		by         signers.Set
		signatures string
		want       string // expected in the error; empty if the signatures are enough
	}{
		"one of one":              {one, sign("x", "b-1"), ""},
		"two of two":              {two, sign("x", "a-1", "c-1"), ""},
		"all, and a stranger":     {two, sign("x", "thief-1", "a-1", "b-1", "c-1"), ""},
		"one of two":              {two, sign("x", "b-1"), "x: signed by 1 of the 2 keys that trust.threshold demands (b-1), want 1 more of a-1, c-1: another operator runs"},
		"one key twice":           {two, sign("x", "b-1", "b-1"), "signed by 1 of the 2 keys"},
		"one key by two names":    {two, sign("x", "b-1") + " " + strings.Replace(sign("x", "b-1"), "b-1:", "c-1:", 1), "signed by 1 of the 2 keys"},
		"one key pinned twice":    {named, sign("x", "a-1"), "signed by 1 of the 2 keys"},
		"one key by both pins":    {named, sign("x", "a-1") + " " + strings.Replace(sign("x", "a-1"), "a-1:", "b-1:", 1), "signed by 1 of the 2 keys"},
		"one, and a stranger":     {two, sign("x", "b-1", "thief-1"), "signed by 1 of the 2 keys"},
		"one, and an older text":  {two, sign("x", "b-1") + " " + sign("w", "a-1"), "signed by 1 of the 2 keys"},
		"strangers":               {two, sign("x", "thief-1"), `signature by "thief-1" does not verify with any pinned key`},
		"none":                    {two, "", "not signed"},
		"more than anybody needs": {two, strings.Repeat(sign("x", "thief-1")+" ", signers.Most) + sign("x", "a-1", "b-1"), "18 signatures, want at most 16"},
	} {
		err := c.by.Verify("x", "x", c.signatures)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	if err := two.Check(); err != nil {
		t.Error(err)
	}
	if err := named.Check(); err == nil || !strings.Contains(err.Error(), "threshold 2 with 1 different keys") {
		t.Errorf("a key with two names: got %v", err)
	}
	for want, signatures := range map[string]string{
		"a-1 b-1": sign("x", "b-1", "a-1", "thief-1"),
		"c-1":     sign("x", "c-1") + " " + sign("w", "a-1"),
		"":        sign("x", "thief-1"),
	} {
		if got := strings.Join(two.Signed("x", signatures), " "); got != want {
			t.Errorf("signed by %q, want %q", got, want)
		}
	}
	if got := named.Signed("x", sign("x", "a-1")); len(got) != 1 || got[0] != "a-1" {
		t.Errorf("a key with two names signed as %q", got)
	}
	if got := signers.Join(sign("x", "a-1"), "", sign("x", "a-1", "b-1")); got != sign("x", "a-1", "b-1") {
		t.Errorf("joined %s", got)
	}
}
