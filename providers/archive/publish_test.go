package archive_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/tests/kit"
)

var now = time.Unix(1_784_011_430, 0)

// tree returns the signed manifests of two hosts.
func tree(k signature.SecretKey, serial int64, change ...func(*document.Manifest)) (archive.SignedTree, error) {
	hosts := map[string][]document.Document{}
	for _, host := range []string{"ursula", "raishan"} {
		m := document.Manifest{
			Cluster: "demo", Host: host, TrustDomain: kit.Domain,
			Identity:  document.Identity{ID: kit.ID("node/" + host)},
			Providers: map[string]map[string]document.Provider{},
		}
		for _, f := range change {
			f(&m)
		}
		hosts[host] = []document.Document{kit.Document(serial, m)}
	}
	return archive.Sign(hosts, k, now)
}

func TestSign(t *testing.T) {
	k := kit.SigningKey("demo-1")
	signed, err := tree(k, now.Unix())
	if err != nil {
		t.Fatal(err)
	}
	for host, documents := range signed {
		if err := documents[0].Verify(signers.Any(k.ToPublicKey().String())); err != nil {
			t.Errorf("%s: %v", host, err)
		}
	}
	if head := signed.Head(); head != (archive.Head{Cluster: "demo", Serial: now.Unix(), Hosts: 2}) {
		t.Errorf("%+v", head)
	}
	_, err = tree(k, now.Unix()+601)
	if err == nil || !strings.Contains(err.Error(), "more than 10m0s ahead of the clock") {
		t.Errorf("of the future: %v", err)
	}
}

// opened returns the document in an envelope.
func opened(t *testing.T, envelope, body []byte, sig string) document.Document {
	t.Helper()
	d, err := document.Open(envelope, body, sig)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func TestRenumber(t *testing.T) {
	k := kit.SigningKey("demo-1")
	signed, err := tree(k, now.Unix())
	if err != nil {
		t.Fatal(err)
	}
	was := signed["ursula"][0]
	envelope, body, sig := was.Bytes()
	d, err := archive.Renumber(opened(t, envelope, body, sig), now.Unix()+5)
	if err != nil {
		t.Fatal(err)
	}
	want := was.Envelope
	want.Serial += 5
	if raw, again, sig := d.Bytes(); d.Envelope != want || string(again) != string(body) || sig != "" ||
		string(raw) != strings.Replace(canonical(t, envelope), fmt.Sprint(now.Unix()), fmt.Sprint(now.Unix()+5), 1) {
		t.Errorf("%+v %s", d.Envelope, sig)
	}
}

func canonical(t *testing.T, b []byte) string {
	t.Helper()
	c, err := hostapi.Canonical(b)
	if err != nil {
		t.Fatal(err)
	}
	return string(c)
}

// TestNameClosures checks that the signed envelope of a document contains the store path of the
// host's system, in a format that supports this. The body of the document does not change.
func TestNameClosures(t *testing.T) {
	const system = "/nix/store/0mw6qwsrz35cck0wnjgmfnjzwnjbspsy-nixos-system-ursula"
	k := kit.SigningKey("demo-1")
	signed, err := tree(k, now.Unix())
	if err != nil {
		t.Fatal(err)
	}
	was := signed["ursula"][0]
	if err := archive.NameClosures(signed, map[string]string{"ursula": system}); err != nil {
		t.Fatal(err)
	}
	named, err := archive.Sign(signed, k, now)
	if err != nil {
		t.Fatal(err)
	}
	d := named["ursula"][0]
	want := was.Envelope
	want.Closure = system
	if d.Envelope != want {
		t.Errorf("%+v, want %+v", d.Envelope, want)
	}
	if envelope, body, sig := d.Bytes(); string(envelope) != canonical(t, envelope) {
		t.Errorf("%s", envelope)
	} else if again, err := archive.Renumber(opened(t, envelope, body, sig), now.Unix()+5); err != nil || again.Envelope.Closure != system {
		t.Errorf("gone back: %+v, %v", again.Envelope, err)
	}
	if other := named["raishan"][0].Envelope; other.Closure != "" {
		t.Errorf("%+v", other)
	}
	for host, path := range map[string]string{"ursulla": system, "ursula": system + "/bin", "raishan": "/nix/store/x"} {
		if err := archive.NameClosures(signed, map[string]string{host: path}); err == nil || !strings.HasPrefix(err.Error(), "closure of ") {
			t.Errorf("%s of %s: %v", path, host, err)
		}
	}
}
