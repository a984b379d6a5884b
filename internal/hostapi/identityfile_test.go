package hostapi_test

import (
	"strings"
	"testing"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/spiffe"
)

// identityVector is the content of the test vector identity.json.
type identityVector struct {
	PrivateKey string                        `json:"privateKey"` // of the device
	Request    hostapi.SignedIdentityRequest `json:"request"`
	Key        string                        `json:"key"` // of an operator
	File       hostapi.SignedIdentityFile    `json:"file"`
	One        hostapi.SignedIdentityFile    `json:"one"` // for a machine that is not a host
}

// TestIdentityVector checks the signatures by a device and by an operator against the vector
// identity.json.
func TestIdentityVector(t *testing.T) {
	var v identityVector
	vectors(t, "identity.json", &v)
	device, err := ssh.ParsePrivateKey([]byte(v.PrivateKey))
	if err != nil {
		t.Fatal(err)
	}
	r, key, err := v.Request.Verify()
	if err != nil || ssh.FingerprintSHA256(key) != ssh.FingerprintSHA256(device.PublicKey()) {
		t.Fatalf("got %v, %v", key, err)
	}
	if again, err := hostapi.SignIdentityRequest([]byte(v.Request.Request), device); err != nil || again != v.Request {
		t.Errorf("got %+v, %v", again, err)
	}
	keys := signers.Any(v.Key)
	f, err := v.File.Verify(r.Cluster, r.Node, keys)
	if err != nil || f.SVID(r.SVIDs[0].ID) == nil || f.SVID(spiffe.ID{}) != nil {
		t.Errorf("got %+v, %v", f, err)
	}
	if one, err := v.One.Verify("", spiffe.ID{}, keys); err != nil || len(one.SVIDs) != 1 || len(one.Roots) != 1 {
		t.Errorf("got %+v, %v", one, err)
	}
	other, err := spiffe.NewID(r.Node.TrustDomain(), spiffe.KindNode, "", "oak")
	if err != nil {
		t.Fatal(err)
	}
	changed := func(s hostapi.SignedIdentityFile, old, new string) hostapi.SignedIdentityFile {
		s.File = strings.Replace(s.File, old, new, 1)
		return s
	}
	for name, c := range map[string]struct {
		file    hostapi.SignedIdentityFile
		cluster string
		node    spiffe.ID
		want    string
	}{
		"another cluster":     {v.File, "other", r.Node, `this host is spiffe://demo.flor/node/elm of "other"`},
		"another host":        {v.File, "demo", other, "this host is spiffe://demo.flor/node/oak"},
		"of no host":          {v.One, "demo", r.Node, "want one of a host"},
		"of a host":           {v.File, "", spiffe.ID{}, "want one of a host"},
		"changed":             {changed(v.File, "PRIVATE", "PUBLIC"), "demo", r.Node, "does not verify"},
		"another schema":      {changed(v.File, "identity-file/v1", "identity-file/v2"), "demo", r.Node, `want "florete.identity-file/v1"`},
		"an attribute more":   {changed(v.File, "{", `{"x":1,`), "demo", r.Node, `unknown field "x"`},
		"a newer format":      {changed(v.File, `"1.0","cluster"`, `"1.9","x":1,"cluster"`), "demo", r.Node, "1.9"},
		"not signed":          {hostapi.SignedIdentityFile{File: v.File.File}, "demo", r.Node, "not signed"},
		"another's signature": {hostapi.SignedIdentityFile{File: v.File.File, Signature: v.One.Signature}, "demo", r.Node, "does not verify"},
	} {
		if _, err := c.file.Verify(c.cluster, c.node, keys); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	for name, old := range map[string]string{"node": "node/elm", "cluster": `"demo"`, "device": "ssh-ed25519 AAAA", "request": "BEGIN"} {
		s := v.Request
		s.Request = strings.Replace(s.Request, old, old+"x", 1)
		if _, _, err := s.Verify(); err == nil {
			t.Errorf("a changed %s verifies", name)
		}
	}
}

// FuzzIdentityFile checks that Verify accepts an identity file only if it is signed and meant for
// the given node.
func FuzzIdentityFile(f *testing.F) {
	var v identityVector
	vectors(f, "identity.json", &v)
	f.Add(v.File.File, v.File.Signature)
	f.Add(v.Request.Request, v.Request.Signature)
	f.Fuzz(func(t *testing.T, text, signature string) {
		r, _, err := v.Request.Verify()
		if err != nil {
			t.Fatal(err)
		}
		file, err := hostapi.SignedIdentityFile{File: text, Signature: signature}.Verify("demo", r.Node, signers.Any(v.Key))
		if err == nil && (text != v.File.File || file.Node != r.Node) {
			t.Errorf("%q is accepted", text)
		}
		got, _, err := hostapi.SignedIdentityRequest{Request: text, Signature: signature}.Verify()
		if err == nil && got.Schema != hostapi.IdentityRequestSchema {
			t.Errorf("%q is accepted", text)
		}
	})
}
