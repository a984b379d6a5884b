package compile

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
)

// since reports the formats of the attributes that a document has, from the schemas.
func (v validator) since(at kit.Place, value any, found func(document.Format)) {
	at = v.Follow(at)
	if text, ok := at.Schema["since"].(string); ok {
		f, err := document.ParseFormat(text)
		if err != nil {
			panic(err)
		}
		found(f)
	}
	below := func(value any, steps ...string) {
		next := at
		for _, s := range steps {
			next = next.Child(s)
		}
		if next.Schema != nil {
			v.since(next, value, found)
		}
	}
	switch value := value.(type) {
	case map[string]any:
		for name, e := range value {
			below(e, "properties", name)
			below(e, "additionalProperties")
		}
	case []any:
		for _, e := range value {
			below(e, "items")
		}
	}
}

// TestFormat checks that an envelope has the newest format among its body's attributes, and that
// none is newer than this release understands.
func TestFormat(t *testing.T) {
	v := validator{kit.Validator{All: schemas(t)}}
	envelopes, err := filepath.Glob("../../../tests/golden/compiler/*/expected/*/*.envelope.json")
	if err != nil || len(envelopes) < 20 {
		t.Fatalf("%d envelopes, %v", len(envelopes), err)
	}
	newest := document.Format{Major: 1}
	for _, path := range envelopes {
		var e document.Envelope
		var body any
		read := func(path string, v any) {
			b, err := os.ReadFile(path)
			if err == nil {
				err = json.Unmarshal(b, v)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		read(path, &e)
		read(filepath.Join(filepath.Dir(path), e.Kind+".json"), &body)
		want := document.Format{Major: 1}
		v.since(kit.Place{File: e.Kind, Schema: v.All[e.Kind]}, body, func(f document.Format) {
			if f.Newer(want) {
				want = f
			}
		})
		if e.Format != want {
			t.Errorf("%s: format %s, want %s", path, e.Format, want)
		}
		if want.Newer(newest) {
			newest = want
		}
	}
	if newest != document.NewestFormat {
		t.Errorf("the newest format of the golden documents is %s, this release understands %s", newest, document.NewestFormat)
	}
}

// TestNewerAttribute checks that a document has the format of its newest attribute, with the
// made-up schema of a later release.
func TestNewerAttribute(t *testing.T) {
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS("../..")); err != nil {
		t.Fatal(err)
	}
	schema := filepath.Join(dir, "schema", "manifest.schema.json")
	b, err := os.ReadFile(schema)
	if err != nil {
		t.Fatal(err)
	}
	now := strings.Replace(string(b), `"joins": { `, `"joins": { "since": "1.7", `, 1)
	if now == string(b) {
		t.Fatal("the schema has no attribute joins")
	}
	if err := os.WriteFile(schema, []byte(now), 0o600); err != nil {
		t.Fatal(err)
	}
	for body, want := range map[string]document.Format{
		`{ identity = { id = "x"; joins = true; }; }`: {Major: 1, Minor: 7},
		`{ identity.id = "x"; }`:                      {Major: 1},
		`{ joins = true; }`:                           {Major: 1}, // of another place
	} {
		expr := fmt.Sprintf(`(import %s/documents/envelope.nix { cluster = "c"; serial = 1; rev = ""; } "manifest" "h" %s).envelope`, dir, body)
		out, err := exec.Command("nix-instantiate", "--eval", "--json", "-E", expr).Output()
		var text string
		if err == nil {
			err = json.Unmarshal(out, &text)
		}
		var e document.Envelope
		if err == nil {
			err = json.Unmarshal([]byte(text), &e)
		}
		if err != nil || e.Format != want {
			t.Errorf("%s: format %s, %v, want %s", body, e.Format, err, want)
		}
	}
}
