package documents

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/tests/kit"
	. "github.com/florete/florete/tests/kit/activationtest"
)

// origins are the two origins of one host's documents, and its store.
type origins struct {
	t *testing.T
	*Cluster
	layout  hostdir.Layout
	closure string
	store   *Store
}

func newOrigins(t *testing.T) *origins {
	return &origins{t: t, Cluster: NewCluster(t), layout: hostdir.Layout(t.TempDir()), closure: t.TempDir()}
}

// version returns a manifest that differs from others in its role.
func (o *origins) version(role string) document.Manifest {
	m := o.Manifest()
	m.Roles = []string{role}
	return m
}

// policy returns a policy for this host that differs from others in its kind.
func (o *origins) policy(kind string) document.Policy {
	m := o.Manifest()
	return document.Policy{Cluster: m.Cluster, Host: m.Host, TrustDomain: m.TrustDomain, Trust: m.Trust,
		Provider: map[string]document.Listening{}, Kinds: map[string]json.RawMessage{kind: json.RawMessage("{}")}}
}

// deploy replaces the closure.
func (o *origins) deploy(docs ...document.Document) {
	o.t.Helper()
	o.closure = o.t.TempDir()
	for _, d := range docs {
		kit.Write(o.closure, d)
	}
}

// open starts a new activation.
func (o *origins) open() string {
	o.t.Helper()
	s, note, err := Open(o.layout, o.closure, nil)
	if err != nil {
		o.t.Fatal(err)
	}
	o.store = s
	return note
}

func (o *origins) accept(docs ...hostapi.SignedDocument) *hostapi.Error {
	return o.store.Accept(o.t.Context(), hostapi.Artifact{Documents: docs})
}

// want checks the documents in force, now and for the next activation.
func (o *origins) want(serial int64, role string) {
	o.t.Helper()
	for _, when := range []string{"now", "after a restart"} {
		set := o.store.Set()
		if set.Document.Envelope.Serial != serial || set.Manifest.Roles[0] != role {
			o.t.Fatalf("%s: serial %d, %q is in force, want %d, %q", when, set.Document.Envelope.Serial, set.Manifest.Roles[0], serial, role)
		}
		o.open()
	}
}

func (o *origins) wantRefused(e *hostapi.Error, kind hostapi.Class, code, text string) {
	o.t.Helper()
	if e == nil || e.Kind != kind || e.Code != code || !strings.Contains(e.Message, text) {
		o.t.Fatalf("%v, want %s (%s) with %q", e, kind, code, text)
	}
}

func (o *origins) wantAccepted(e *hostapi.Error) {
	o.t.Helper()
	if e != nil {
		o.t.Fatal(e)
	}
}

func TestOrigins(t *testing.T) {
	o := newOrigins(t)
	a, b, c := o.version("a"), o.version("b"), o.version("c")

	o.deploy(kit.Document(5, a))
	if note := o.open(); note != "taken from the closure" {
		t.Error(note)
	}
	o.want(5, "a")
	if note := o.open(); note != "unchanged" {
		t.Error(note)
	}

	o.wantAccepted(o.accept(kit.Signed(5, a, o.Signing))) // the same says nothing new
	o.want(5, "a")
	o.wantAccepted(o.accept(kit.Signed(6, b, o.Signing)))
	o.want(6, "b") // a closure that did not change does not win
	o.wantRefused(o.accept(kit.Signed(5, a, o.Signing)), hostapi.Transient, CodeOlder.Name, "manifest has serial 5, this host has already accepted serial 6: publish a newer one, or go back by deploying the closure")
	o.want(6, "b")

	o.deploy(kit.Document(4, c)) // may go backwards
	o.open()
	o.want(4, "c")
	o.wantAccepted(o.accept(kit.Signed(6, b, o.Signing))) // what the network brought before does not come back
	o.want(4, "c")
	o.wantRefused(o.accept(kit.Signed(5, a, o.Signing)), hostapi.Transient, CodeOlder.Name, "serial 5")
	o.want(4, "c")
	o.wantAccepted(o.accept(kit.Signed(7, a, o.Signing)))
	o.want(7, "a")

	o.deploy(kit.Document(5, c)) // another envelope is another closure
	o.open()
	o.want(5, "c")
}

// TestConfirmed checks a host whose documents came with its closure and whose provider says that it
// has the same: older documents are refused from then on.
func TestConfirmed(t *testing.T) {
	o := newOrigins(t)
	older := kit.Signed(3, o.version("a"), o.Signing)
	o.deploy(kit.Document(7, o.version("b")))
	o.open()
	confirm := func(tag string) {
		o.wantAccepted(o.store.Accept(t.Context(), hostapi.Artifact{NotModified: true, Has: tag}))
	}
	confirm(`"sha256-of-other-documents"`)
	o.wantAccepted(o.accept(older)) // the closure is ahead of what is published
	confirm(o.store.Set().Tag())
	o.want(7, "b")
	o.wantRefused(o.accept(older), hostapi.Transient, CodeOlder.Name, "serial 3")
	o.want(7, "b")
}

// TestClosureAhead checks a host that is deployed before its documents are published: the older
// documents of the provider change nothing and are no error, unless the closure is reverted.
func TestClosureAhead(t *testing.T) {
	o := newOrigins(t)
	o.deploy(kit.Document(7, o.version("ahead")))
	o.open()
	o.wantAccepted(o.accept(kit.Signed(3, o.version("a"), o.Signing)))
	o.wantAccepted(o.accept(kit.Signed(4, o.version("b"), o.Signing)))
	o.want(7, "ahead")
	o.wantRefused(o.accept(kit.Signed(3, o.version("a"), o.Signing)), hostapi.Transient, CodeOlder.Name, "serial 3")
	o.want(7, "ahead")
	o.deploy(kit.Document(6, o.version("back"))) // which is ahead, too
	o.open()
	o.wantAccepted(o.accept(kit.Signed(4, o.version("b"), o.Signing)))
	o.wantAccepted(o.accept(kit.Signed(7, o.version("ahead"), o.Signing)))
	o.want(6, "back")
}

// TestGoingBackHolds checks that a version that the operator has reverted does not come back from a
// provider that serves it, even if this host had it only from the closure.
func TestGoingBackHolds(t *testing.T) {
	o := newOrigins(t)
	good, bad := o.version("good"), o.version("bad")
	o.deploy(kit.Document(5, good), kit.Document(5, o.policy("cert")))
	o.open()
	o.deploy(kit.Document(6, bad), kit.Document(6, o.policy("file")))
	o.open()
	o.deploy(kit.Document(5, good), kit.Document(5, o.policy("cert")))
	o.open()
	for range 2 {
		o.wantAccepted(o.accept(kit.Signed(6, bad, o.Signing), kit.Signed(6, o.policy("file"), o.Signing)))
		o.want(5, "good")
		if e := o.store.Set().Policy.Envelope; e.Serial != 5 {
			t.Fatalf("policy has serial %d", e.Serial)
		}
	}
	o.wantAccepted(o.accept(kit.Signed(7, good, o.Signing), kit.Signed(7, o.policy("cert"), o.Signing)))
	o.want(7, "good")
}

// TestTag checks that the tag of the documents in force equals the tag of the artifact, for every
// origin of the documents.
func TestTag(t *testing.T) {
	o := newOrigins(t)
	m, p := o.version("a"), o.policy("cert")
	served := hostapi.Artifact{Documents: []hostapi.SignedDocument{kit.Signed(5, p, o.Signing), kit.Signed(5, m, o.Signing)}}
	o.deploy(kit.Document(5, m), kit.Document(5, p))
	o.open()
	if got := o.store.Set().Tag(); got != served.Tag() {
		t.Errorf("closure: %s, served %s", got, served.Tag())
	}
	served.Documents[1] = kit.Signed(6, m, o.Signing)
	if o.store.Set().Tag() == served.Tag() {
		t.Error("another envelope has the same tag")
	}
	o.wantAccepted(o.store.Accept(o.t.Context(), served))
	if got := o.store.Set().Tag(); got != served.Tag() {
		t.Errorf("network: %s, served %s", got, served.Tag())
	}
	o.wantAccepted(o.store.Accept(o.t.Context(), hostapi.Artifact{NotModified: true}))
	o.want(6, "a")
}

func TestSerialThenDigest(t *testing.T) {
	o := newOrigins(t)
	a, b := o.version("a"), o.version("b")
	if d := kit.Document(5, a); d.Envelope.Newer(kit.Document(5, b).Envelope) {
		a, b = b, a
	}
	o.deploy(kit.Document(5, a))
	o.open()
	o.wantAccepted(o.accept(kit.Signed(5, b, o.Signing)))
	o.want(5, b.Roles[0])
	o.wantRefused(o.accept(kit.Signed(5, a, o.Signing)), hostapi.Transient, CodeOlder.Name, "serial 5")
	o.want(5, b.Roles[0])
}

func TestPinnedKeys(t *testing.T) {
	o := newOrigins(t)
	second, third := kit.SigningKey("demo-2"), kit.SigningKey("demo-3")
	o.deploy(kit.Document(1, o.version("a")))
	o.open()
	o.wantRefused(o.accept(kit.Signed(2, o.version("b"), second)), hostapi.Denied, CodeTampered.Name, `signature by "demo-2" does not verify with any pinned key: publish with a key that this host pins, or deploy its closure`)

	next := o.version("b")
	next.Trust.SigningKeys = []string{second.ToPublicKey().String()}
	o.wantAccepted(o.accept(kit.Signed(2, next, o.Signing))) // accepted under the old key, brings the new one
	o.want(2, "b")
	last := o.version("c")
	last.Trust.SigningKeys = []string{third.ToPublicKey().String()}
	o.wantRefused(o.accept(kit.Signed(3, last, o.Signing)), hostapi.Denied, CodeTampered.Name, `"demo-1"`)
	o.wantAccepted(o.accept(kit.Signed(3, last, second)))
	o.want(3, "c")

	o.deploy(kit.Document(1, o.version("d"))) // the closure is trusted, and so are its pins
	o.open()
	o.want(1, "d")
	o.wantRefused(o.accept(kit.Signed(9, last, third)), hostapi.Denied, CodeTampered.Name, `"demo-3"`)
	o.wantAccepted(o.accept(kit.Signed(9, next, o.Signing)))
	o.want(9, "b")
}

// TestThreshold checks that the manifest in force decides how many keys must sign, also for a
// manifest that changes this number.
func TestThreshold(t *testing.T) {
	o := newOrigins(t)
	second, gone := kit.SigningKey("demo-2"), kit.SigningKey("demo-3")
	both := []string{o.Signing.ToPublicKey().String(), second.ToPublicKey().String()}
	trusting := func(name string, keys []string, threshold int) document.Manifest {
		m := o.version(name)
		m.Trust.SigningKeys, m.Trust.Threshold = keys, threshold
		return m
	}
	signed := func(serial int64, m document.Manifest, keys ...signature.SecretKey) (d hostapi.SignedDocument) {
		var all []string
		for _, k := range keys {
			d = kit.Signed(serial, m, k)
			all = append(all, d.Signature)
		}
		d.Signature = strings.Join(all, " ")
		return d
	}
	refused := func(d hostapi.SignedDocument) {
		t.Helper()
		o.wantRefused(o.accept(d), hostapi.Denied, CodeTampered.Name, "signed by 1 of the 2 keys that trust.threshold demands")
	}
	o.deploy(kit.Document(1, trusting("a", both, 0)))
	o.open()
	o.wantAccepted(o.accept(signed(2, trusting("b", both, 2), o.Signing))) // one key may raise it
	o.want(2, "b")

	refused(signed(3, trusting("c", both, 2), o.Signing))
	refused(signed(3, trusting("c", both, 2), o.Signing, o.Signing))
	refused(signed(3, trusting("c", both, 2), o.Signing, gone))
	refused(signed(3, trusting("c", both, 0), o.Signing)) // one key does not lower it
	refused(signed(3, trusting("c", []string{both[0]}, 0), o.Signing))
	older := signed(2, trusting("b", both, 2), second).Signature
	mixed := signed(3, trusting("c", both, 2), o.Signing)
	mixed.Signature += " " + older
	refused(mixed)
	o.want(2, "b")
	o.wantRefused(o.accept(signed(3, trusting("c", both, 2), second, o.Signing), signedPolicy(o, 3, o.Signing)), hostapi.Denied, CodeTampered.Name, "policy of ursula, serial 3: signed by 1 of the 2 keys")
	o.want(2, "b")

	o.wantAccepted(o.accept(signed(3, trusting("c", both, 2), second, o.Signing)))
	o.want(3, "c")
	o.wantAccepted(o.accept(signed(4, trusting("d", both, 0), o.Signing, second)))
	o.wantAccepted(o.accept(signed(5, trusting("e", both, 0), second)))
	o.want(5, "e")
}

func signedPolicy(o *origins, serial int64, key signature.SecretKey) hostapi.SignedDocument {
	return kit.Signed(serial, o.policy("cert"), key)
}

func TestRefusedFromTheNetwork(t *testing.T) {
	o := newOrigins(t)
	o.deploy(kit.Document(1, o.version("a")))
	o.open()
	good := kit.Signed(2, o.version("b"), o.Signing)
	edit := func(f func(*hostapi.SignedDocument)) hostapi.SignedDocument {
		d := good
		f(&d)
		return d
	}
	foreign := o.version("b")
	foreign.Host = "raishan"
	elsewhere := o.version("b")
	elsewhere.Cluster = "other"
	rootless := o.version("b")
	rootless.Trust.Roots = []string{}
	unpinned := o.version("b")
	unpinned.Trust.SigningKeys = []string{"demo-1"}
	for name, c := range map[string]struct {
		docs []hostapi.SignedDocument
		kind hostapi.Class
		code string
		text string
	}{
		"nothing":      {nil, hostapi.Transient, hostapi.CodeMissing.Name, "no manifest for ursula yet: publish it"},
		"unsigned":     {[]hostapi.SignedDocument{edit(func(d *hostapi.SignedDocument) { d.Signature = "" })}, hostapi.Denied, CodeTampered.Name, "not signed"},
		"no signature": {[]hostapi.SignedDocument{edit(func(d *hostapi.SignedDocument) { d.Signature = "demo-1" })}, hostapi.Denied, CodeTampered.Name, "signature"},
		"body":         {[]hostapi.SignedDocument{edit(func(d *hostapi.SignedDocument) { d.Body += "\n" })}, hostapi.Denied, CodeTampered.Name, "the body was changed"},
		"envelope": {[]hostapi.SignedDocument{edit(func(d *hostapi.SignedDocument) {
			d.Envelope = strings.Replace(d.Envelope, `"serial":2`, `"serial":3`, 1)
		})}, hostapi.Denied, CodeTampered.Name, "does not verify"},
		"twice":           {[]hostapi.SignedDocument{good, good}, hostapi.Denied, hostapi.CodeMalformed.Name, "two documents of kind manifest"},
		"another host":    {[]hostapi.SignedDocument{kit.Signed(2, foreign, o.Signing)}, hostapi.Denied, CodeForeign.Name, "manifest is for demo/raishan, this host is demo/ursula"},
		"another cluster": {[]hostapi.SignedDocument{kit.Signed(2, elsewhere, o.Signing)}, hostapi.Denied, CodeForeign.Name, "manifest is for other/ursula"},
		"no roots":        {[]hostapi.SignedDocument{kit.Signed(2, rootless, o.Signing)}, hostapi.Denied, hostapi.CodeMalformed.Name, "no trust roots"},
		"not a key":       {[]hostapi.SignedDocument{kit.Signed(2, unpinned, o.Signing)}, hostapi.Denied, hostapi.CodeMalformed.Name, `trust key "demo-1"`},
		"policy alone":    {[]hostapi.SignedDocument{kit.Signed(2, o.policy("cert"), o.Signing)}, hostapi.Transient, hostapi.CodeMissing.Name, "no manifest"},
		"good manifest, bad policy": {[]hostapi.SignedDocument{good, kit.Signed(2, o.policy("cert"), kit.SigningKey("demo-1"))},
			hostapi.Denied, CodeTampered.Name, "policy of ursula"},
	} {
		t.Run(name, func(t *testing.T) {
			o.t = t
			o.wantRefused(o.accept(c.docs...), c.kind, c.code, c.text)
			o.want(1, "a")
		})
	}
}

// TestPolicies checks that a set comes in force whole or not at all, and that policies are ordered
// like manifests.
func TestPolicies(t *testing.T) {
	o := newOrigins(t)
	o.deploy(kit.Document(1, o.version("a")), kit.Document(1, o.policy("cert")))
	o.open()
	kind := func() string {
		for k := range o.store.Set().Policy.Policy().Kinds {
			return k
		}
		return ""
	}
	if kind() != "cert" {
		t.Fatal(kind())
	}
	o.wantAccepted(o.accept(kit.Signed(1, o.version("a"), o.Signing), kit.Signed(2, o.policy("oidc"), o.Signing)))
	o.want(1, "a")
	if kind() != "oidc" {
		t.Error(kind())
	}
	o.wantRefused(o.accept(kit.Signed(3, o.version("b"), o.Signing), kit.Signed(1, o.policy("cert"), o.Signing)), hostapi.Transient, CodeOlder.Name, "policy has serial 1")
	o.want(1, "a")
	o.wantAccepted(o.accept(kit.Signed(3, o.version("b"), o.Signing))) // withholding takes nothing away
	o.want(3, "b")
	if kind() != "oidc" {
		t.Error(kind())
	}
	second := kit.SigningKey("demo-2")
	next := o.version("c")
	next.Trust.SigningKeys = []string{second.ToPublicKey().String()}
	o.wantAccepted(o.accept(kit.Signed(4, next, o.Signing), kit.Signed(4, o.policy("config"), second)))
	o.want(4, "c")
	o.deploy(kit.Document(1, o.version("a"))) // the closure alone says that there is none any more
	o.open()
	o.want(1, "a")
	if o.store.Set().Policy != nil {
		t.Error("a policy is still in force")
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(o *origins)
		want  string
	}{
		"empty closure":    {func(o *origins) { o.deploy() }, "closure: open "},
		"tampered closure": {func(o *origins) { overwrite(o.t, filepath.Join(o.closure, "manifest.json"), "{}") }, "the body was changed"},
		"policy of another": {func(o *origins) {
			p := o.policy("cert")
			p.Host = "raishan"
			o.deploy(kit.Document(2, o.version("b")), kit.Document(2, p))
		}, "policy is for demo/raishan, manifest for demo/ursula"},
		"no closure, nothing accepted": {func(o *origins) { o.closure = ""; os.RemoveAll(o.layout.Documents()) }, "no documents: "},
	} {
		t.Run(name, func(t *testing.T) {
			o := newOrigins(t)
			o.deploy(kit.Document(1, o.version("a")))
			o.open()
			c.spoil(o)
			if _, _, err := Open(o.layout, o.closure, nil); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
}

// newer returns an envelope as a newer release would write it.
func newer(envelope string) string {
	f := document.NewestFormat
	return strings.Replace(envelope, `"format":"`+f.String()+`"`, fmt.Sprintf(`"format":"%d.%d"`, f.Major, f.Minor+1), 1)
}

// TestNewerFormat checks that documents that only a newer release understands leave the present
// ones in force and are not reported as tampered.
func TestNewerFormat(t *testing.T) {
	o := newOrigins(t)
	o.deploy(kit.Document(5, o.version("a")))
	o.open()

	o.deploy(kit.Document(6, o.version("b")))
	path := filepath.Join(o.closure, document.EnvelopeFile(document.DocManifest))
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	overwrite(t, path, newer(string(b)))
	if note := o.open(); !strings.Contains(note, "kept, because the closure has a manifest of ursula, serial 6: has format ") {
		t.Error(note)
	}
	o.want(5, "a")
	if e, err := o.layout.ClosureError(); err != nil || e == nil || e.Code != hostapi.CodeNewerFormat.Name || !strings.Contains(e.Message, "upgrade") {
		t.Errorf("%+v, %v", e, err)
	}

	d := kit.Signed(7, o.version("c"), o.Signing)
	d.Envelope = newer(d.Envelope)
	o.wantRefused(o.accept(d), hostapi.Transient, hostapi.CodeNewerFormat.Name, "manifest of ursula, serial 7: has format ")
	o.want(5, "a")

	o.deploy(kit.Document(8, o.version("d")))
	o.open()
	o.want(8, "d")
	if e, err := o.layout.ClosureError(); err != nil || e != nil {
		t.Errorf("%+v, %v", e, err)
	}
}

// TestHeldIsBroken checks that the closure replaces documents in force that were lost.
func TestHeldIsBroken(t *testing.T) {
	o := newOrigins(t)
	o.deploy(kit.Document(1, o.version("a")))
	o.open()
	overwrite(t, filepath.Join(hostdir.Current(o.layout.Documents()), "manifest.json"), "{}")
	if note := o.open(); !strings.Contains(note, "because what was in force cannot be read") {
		t.Error(note)
	}
	o.want(1, "a")
}

// TestWithoutClosure checks that a host without a closure keeps the documents that it has.
func TestWithoutClosure(t *testing.T) {
	o := newOrigins(t)
	o.deploy(kit.Document(1, o.version("a")))
	o.open()
	o.closure = ""
	o.open()
	o.wantAccepted(o.accept(kit.Signed(2, o.version("b"), o.Signing)))
	o.want(2, "b")
}

func overwrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// FuzzAccept offers arbitrary bytes as an artifact, of which nothing may come in force without a
// signature.
func FuzzAccept(f *testing.F) {
	c := NewCluster(f)
	layout, closure := hostdir.Layout(f.TempDir()), f.TempDir()
	kit.Write(closure, kit.Document(1, c.Manifest()))
	s, _, err := Open(layout, closure, nil)
	if err != nil {
		f.Fatal(err)
	}
	m := c.Manifest()
	m.Roles = []string{"more"}
	good := kit.Signed(2, m, c.Signing)
	for _, d := range []hostapi.SignedDocument{{Envelope: good.Envelope, Body: good.Body, Signature: "demo-1:AAAA"}, {Envelope: good.Envelope, Body: "{}", Signature: good.Signature}, kit.Signed(2, m, kit.SigningKey("demo-1"))} {
		b, err := json.Marshal(hostapi.Artifact{Documents: []hostapi.SignedDocument{d}})
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var a hostapi.Artifact
		if strictjson.Decode(b, &a) != nil {
			return
		}
		if e := s.Accept(t.Context(), a); e == nil || e.Message == "" || s.Set().Document.Envelope.Serial != 1 {
			t.Errorf("accepted: %v", e)
		}
	})
}
