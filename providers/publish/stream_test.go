package publish_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/florete/florete/providers/publish"
	"github.com/florete/florete/tests/kit"
)

// TestStream: Decode(Encode(t)) is t, for whoever pins the key.
func TestStream(t *testing.T) {
	k := kit.SigningKey("demo-1")
	made, err := tree(k, now.Unix())
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := made.Encode(&b); err != nil {
		t.Fatal(err)
	}
	text := b.String()
	pinned := []string{k.ToPublicKey().String()}
	got, err := publish.Decode(strings.NewReader(text), pinned)
	if err != nil || len(got) != 2 || got.Serial() != made.Serial() {
		t.Fatalf("%v, %v", got, err)
	}
	_, body, signature := got["ursula"][0].Bytes()
	if _, want, same := made["ursula"][0].Bytes(); string(body) != string(want) || signature != same {
		t.Error("the documents differ")
	}
	other := []string{kit.SigningKey("demo-1").ToPublicKey().String()}
	for name, c := range map[string]struct {
		text string
		keys []string
		want string
	}{
		"another key":  {text, other, `signature by "demo-1" does not verify with any pinned key`},
		"no pins":      {text, nil, "does not verify"},
		"not signed":   {strings.ReplaceAll(text, `"signature":"`, `"signature":"","x":"`), pinned, "want what florctl publish writes"},
		"another body": {strings.Replace(text, "demo.flor", "dema.flor", 1), pinned, "digest"},
		"another host": {strings.Replace(text, `{"raishan":`, `{"wiki":`, 1), pinned, `host "wiki": the manifest is of host "raishan"`},
		"a path":       {strings.Replace(text, `{"raishan":`, `{"../raishan":`, 1), pinned, `host "../raishan": not a name`},
		"nothing":      {"{}", pinned, "no host in it"},
		"not JSON":     {"hello", pinned, "want what florctl publish writes"},
	} {
		if _, err := publish.Decode(strings.NewReader(c.text), c.keys); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want …%s…", name, err, c.want)
		}
	}
}
