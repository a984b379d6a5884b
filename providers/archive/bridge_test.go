package archive_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/tests/kit"
)

// provider is the documents of a provider host that grants needs, "node need generation".
func provider(host string, serial int64, kinds []string, grants ...string) []document.Document {
	p := document.Policy{Cluster: "demo", Host: host, TrustDomain: kit.Domain, Provider: map[string]document.Listening{}, Kinds: map[string]json.RawMessage{}}
	for _, kind := range kinds {
		p.Kinds[kind] = json.RawMessage("{}")
	}
	for _, g := range grants {
		var node, need, kind string
		generation := 0
		if _, err := fmt.Sscan(g, &node, &need, &kind, &generation); err != nil {
			panic(err)
		}
		p.Grants = append(p.Grants, document.Grant{Caller: kit.ID("node/" + node), Need: need, Kind: kind, Request: json.RawMessage("{}"), Generation: generation})
		if len(p.Devices) == 0 || p.Devices[len(p.Devices)-1].ID != kit.ID("node/"+node) {
			p.Devices = append(p.Devices, document.Device{ID: kit.ID("node/" + node), SSHHostKey: fmt.Sprintf("of serial %d", serial)})
		}
	}
	m := manifest(host)
	m.Providers["x"] = map[string]document.Provider{"config": {ID: kit.ProviderID("x", "config"), Addresses: document.Addresses{"127.0.0.1:1"}}}
	m.Needs = []document.Need{{ID: "config-documents", Kind: document.KindConfig, Generation: 1, Providers: []string{"x"}, For: kit.ID("node/" + host), Request: json.RawMessage("{}"), Deliver: document.Deliver{Files: map[string]document.File{}}}}
	return []document.Document{kit.Document(serial, m), kit.Document(serial, p)}
}

func manifest(host string) document.Manifest {
	return document.Manifest{Cluster: "demo", Host: host, TrustDomain: kit.Domain, Identity: document.Identity{ID: kit.ID("node/" + host)}, Providers: map[string]map[string]document.Provider{}}
}

// A bridge grants what either version needs, in the words of the next one where both do.
func TestBridge(t *testing.T) {
	both := []string{"cert", "oidc"}
	former := map[string][]document.Document{
		"p":    provider("p", 10, append(both, "file"), "a cert-node cert 1", "a file-x file 1", "b cert-node cert 1", "b oidc-w oidc 1"),
		"same": provider("same", 10, both, "a cert-node cert 1"),
	}
	next := map[string][]document.Document{
		"p":      provider("p", 20, both, "b cert-node cert 2", "c cert-node cert 1"),
		"same":   provider("same", 10, both, "a cert-node cert 1"),
		"new":    provider("new", 20, both, "a cert-node cert 1"),
		"closed": {kit.Document(20, manifest("closed")), provider("closed", 20, both)[1]},
	}
	next["begins"] = provider("begins", 20, both, "a cert-node cert 1")
	former["begins"] = provider("begins", 10, both)[:1]
	former["closed"] = provider("closed", 10, both, "a cert-node cert 1")
	got, err := archive.Bridge(next, former, 19)
	if err != nil || len(got) != 2 || len(got["p"]) != 1 || len(got["begins"]) != 1 {
		t.Fatalf("%v, %v", got, err)
	}
	if d := got["p"][0].Envelope; d.Serial != 19 || d.Kind != document.DocPolicy || d.Host != "p" {
		t.Errorf("%+v", d)
	}
	if d := got["begins"][0]; d.Envelope.Serial != 19 || d.Envelope.Digest != next["begins"][1].Envelope.Digest {
		t.Errorf("%+v", d.Envelope)
	}
	p := got["p"][0].Policy()
	var grants, devices []string
	for _, g := range p.Grants {
		grants = append(grants, fmt.Sprint(g.Caller.Name(), " ", g.Need, " ", g.Generation))
	}
	for _, d := range p.Devices {
		devices = append(devices, d.ID.Name()+" "+d.SSHHostKey)
	}
	if got := strings.Join(grants, ", "); got != "a cert-node 1, b cert-node 2, b oidc-w 1, c cert-node 1" {
		t.Error(got) // nothing of kind file, which the host no longer runs
	}
	if got := strings.Join(devices, ", "); got != "a of serial 10, b of serial 20, c of serial 20" {
		t.Error(got)
	}
}

// Streams that follow are read one after the other, and no more than there are.
func TestStreamsFollow(t *testing.T) {
	k := kit.SigningKey("demo-1")
	var text strings.Builder
	var trees []archive.SignedTree
	for i := range int64(3) {
		made, err := tree(k, now.Unix()-i)
		if err != nil {
			t.Fatal(err)
		}
		trees = append(trees, made)
	}
	if err := trees[0].Encode(&text, trees[1:]...); err != nil {
		t.Fatal(err)
	}
	readAll := func(text string) (serials []int64, err error) {
		r, err := archive.NewStreamReader(strings.NewReader(text))
		for err == nil && r != nil {
			for _, failed := range r.All(signers.Any(k.ToPublicKey().String())) {
				if failed != nil {
					return serials, failed
				}
			}
			serials = append(serials, r.Serial)
			r, err = r.Next()
		}
		return serials, err
	}
	if got, err := readAll(text.String()); err != nil || fmt.Sprint(got) != fmt.Sprint([]int64{now.Unix(), now.Unix() - 1, now.Unix() - 2}) {
		t.Errorf("%v, %v", got, err)
	}
	for name, c := range map[string][2]string{
		"one too many":  {text.String() + "x", "more follows the 2 hosts"},
		"cut short":     {text.String()[:len(text.String())/2], "unexpected EOF"},
		"a wrong count": {strings.Replace(text.String(), `"follow":1`, `"follow":2`, 1), "2 streams follow, want 1"},
		"many":          {strings.Replace(text.String(), `"follow":2`, `"follow":3`, 1), "3 streams follow"},
	} {
		if _, err := readAll(c[0]); err == nil || !strings.Contains(err.Error(), c[1]) {
			t.Errorf("%s: %v, want …%s…", name, err, c[1])
		}
	}
}
