package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"testing"

	"florete"
	"florete/agent/wire"
)

type vectors struct {
	ALPN      string
	Preambles []struct {
		Target florete.ID
		Hex    string
	}
	Refused []struct{ Why, Hex, Error string }
	Answers map[string]byte
	Codes   map[string]wire.Code
}

func load(t testing.TB) (v vectors) {
	t.Helper()
	b, err := os.ReadFile("../../tests/golden/wire/forwarder/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPreambleVectors(t *testing.T) {
	for _, v := range load(t).Preambles {
		want := wire.Preamble{Target: v.Target}
		if got := hex.EncodeToString(want.Append(nil)); got != v.Hex {
			t.Errorf("%s is written as %s, want %s", v.Target, got, v.Hex)
		}
		r := bytes.NewReader(append(unhex(t, v.Hex), "payload"...))
		if got, err := wire.Read(r); err != nil || got != want {
			t.Errorf("%s is read as %v, %v", v.Hex, got, err)
		}
		if r.Len() != len("payload") {
			t.Errorf("%d bytes left behind the preamble, want %d", r.Len(), len("payload"))
		}
	}
}

func TestRefusedVectors(t *testing.T) {
	for _, v := range load(t).Refused {
		_, err := wire.Read(bytes.NewReader(unhex(t, v.Hex)))
		if err == nil || err.Error() != v.Error {
			t.Errorf("%s: error %v, want %q", v.Why, err, v.Error)
		}
	}
}

func TestNumbers(t *testing.T) {
	v := load(t)
	if v.ALPN != wire.ALPN {
		t.Errorf("ALPN is %q, want %q", wire.ALPN, v.ALPN)
	}
	if v.Answers["connected"] != wire.Connected {
		t.Errorf("connected is %d, want %d", wire.Connected, v.Answers["connected"])
	}
	for name, code := range v.Codes {
		if code.String() != name {
			t.Errorf("code %d is %q, want %q", code, code, name)
		}
	}
	if next := wire.Code(len(v.Codes)); next.String() != "code-10" {
		t.Errorf("code %d is %q: the vectors do not have it", next, next)
	}
}

// FuzzRead holds the law that what Read takes is what Append writes.
func FuzzRead(f *testing.F) {
	v := load(f)
	for _, p := range v.Preambles {
		f.Add(unhex(f, p.Hex))
	}
	for _, p := range v.Refused {
		f.Add(unhex(f, p.Hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		p, err := wire.Read(r)
		if err != nil {
			return
		}
		if taken := b[:len(b)-r.Len()]; !bytes.Equal(p.Append(nil), taken) {
			t.Fatalf("read %x, writes %x", taken, p.Append(nil))
		}
	})
}
