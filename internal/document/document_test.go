package document_test

import (
	"bytes"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/tests/kit"
)

const body = `{"cluster":"demo","forwarder":{"callers":[],"listen":[],"publish":[],"reach":[],"socks":[]},"host":"ursula",` +
	`"identity":{"id":"spiffe://demo.flor/node/ursula","sshHostKey":"ssh-ed25519 AAAA"},"needs":[%s],` +
	`"providers":{"forge":{"cert":{"addresses":["127.0.0.1:1"],"id":"spiffe://demo.flor/service/forge/florete-provider-cert"}}},` +
	`"roles":["node"],"trust":{"roots":[],"signingKeys":[]},"trustDomain":"demo.flor"}`

func need(id, extra string) string {
	return fmt.Sprintf(`{"dependsOn":[],"deliver":{"files":{},"owner":""},"for":"spiffe://demo.flor/node/ursula","generation":1,"id":%q,"kind":"cert","onChange":[],"providers":["forge"],"renew":{},"request":{}%s}`, id, extra)
}

// forwarder returns the body of a test manifest with the given entries in the lists publish and
// reach.
func forwarder(publish, reach string) string {
	return strings.NewReplacer(`"publish":[]`, `"publish":[`+publish+`]`, `"reach":[]`, `"reach":[`+reach+`]`).Replace(fmt.Sprintf(body, need("cert-node", "")))
}

var labelA, labelB = strings.Repeat("0a", 16), strings.Repeat("0b", 16)

// relayed returns the body of a test manifest in which one text is replaced by another. The
// manifest's host is a relay, has an uplink, and reaches a service through a relay.
func relayed(old, replacement string) string {
	text := strings.Replace(forwarder(
		`{"id":"spiffe://demo.flor/service/dns","upstream":"[::1]:53","allow":[],"opaqueName":"`+labelA+`"}`,
		`{"id":"spiffe://demo.flor/service/dns","callers":[],"listen":"127.0.0.1:53","endpoints":[],`+
			`"via":[{"by":["gate"],"label":"`+labelA+`"}],"opaqueName":"`+labelB+`"}`), `"forwarder":{`,
		`"forwarder":{"relays":{"gate":{"id":"spiffe://demo.flor/vertex/gate","addresses":["a:1"]}},"uplinks":["gate"],`+
			`"relay":{"id":"spiffe://demo.flor/vertex/ursula","routes":[`+
			`{"label":"`+labelA+`","to":"spiffe://demo.flor/node/vault","from":["spiffe://demo.flor/node/a"]},`+
			`{"label":"`+labelB+`","to":"spiffe://demo.flor/vertex/gate","next":"`+labelA+`","from":["spiffe://demo.flor/node/a"]}]},`, 1)
	return strings.Replace(text, old, replacement, 1)
}

func envelope(t testing.TB, body string, change func(*document.Envelope)) []byte {
	e := document.Envelope{Schema: document.EnvelopeSchema, Format: document.NewestFormat, Cluster: "demo", Host: "ursula", Kind: document.DocManifest, Digest: document.Digest([]byte(body)), Serial: 7}
	if change != nil {
		change(&e)
	}
	b, err := json.Marshal(e)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestOpenRefuses(t *testing.T) {
	plain := fmt.Sprintf(body, need("cert-node", ""))
	for name, c := range map[string]struct {
		body   string
		change func(*document.Envelope)
		want   string
	}{
		"changed body":      {plain, func(e *document.Envelope) { e.Digest = document.Digest(nil) }, "the body was changed"},
		"other schema":      {plain, func(e *document.Envelope) { e.Schema = "florete.envelope/v2" }, "unsupported envelope schema"},
		"other kind":        {plain, func(e *document.Envelope) { e.Kind = "letter" }, `kind "letter"`},
		"kind of another":   {plain, func(e *document.Envelope) { e.Kind = document.DocPolicy }, "unknown field"},
		"host of another":   {plain, func(e *document.Envelope) { e.Host = "raishan" }, "body is for demo/ursula, envelope for demo/raishan"},
		"need twice":        {fmt.Sprintf(body, need("a", "")+","+need("a", "")), nil, `need "a": given twice`},
		"path as need":      {fmt.Sprintf(body, need("../a", "")), nil, "not a lower-case DNS label"},
		"unknown need":      {fmt.Sprintf(body, strings.Replace(need("a", ""), `"dependsOn":[]`, `"dependsOn":["b"]`, 1)), nil, `depends on "b"`},
		"unit as a path":    {strings.Replace(plain, `"trustDomain":`, `"units":{"../agent.service":true},"trustDomain":`, 1), nil, `unit "../agent.service": want a name such as agent.service`},
		"depends on itself": {fmt.Sprintf(body, strings.Replace(need("a", ""), `"dependsOn":[]`, `"dependsOn":["a"]`, 1)), nil, `depends on "a"`},
		"path as file":      {fmt.Sprintf(body, strings.Replace(need("a", ""), `"files":{}`, `"files":{"../x":{"value":"x","mode":"0400"}}`, 1)), nil, "not a plain file name"},
		"setuid file":       {fmt.Sprintf(body, strings.Replace(need("a", ""), `"files":{}`, `"files":{"x":{"value":"x","mode":"4755"}}`, 1)), nil, `mode "4755"`},
		"unknown provider":  {fmt.Sprintf(body, strings.Replace(need("a", ""), `["forge"]`, `["gone"]`, 1)), nil, `provider "gone"`},
		"for nobody":        {fmt.Sprintf(body, strings.Replace(need("a", ""), `"for":"spiffe://demo.flor/node/ursula",`, "", 1)), nil, "no for"},
		"no provider":       {fmt.Sprintf(body, strings.Replace(need("a", ""), `["forge"]`, `[]`, 1)), nil, "no provider"},
		"request a list":    {fmt.Sprintf(body, strings.Replace(need("a", ""), `"request":{}`, `"request":[]`, 1)), nil, "request is not an object"},
		"unknown field":     {fmt.Sprintf(body, need("a", `,"extra":1`)), nil, `unknown field "extra"`},
		"other protocol":    {forwarder(`{"id":"spiffe://demo.flor/service/dns","protocol":"sctp","upstream":"[::1]:53","allow":[]}`, ""), nil, `service/dns: protocol "sctp", want "udp" or none`},
		"protocol written":  {forwarder("", `{"id":"spiffe://demo.flor/service/dns","protocol":"tcp","callers":[],"listen":"127.0.0.1:53","endpoints":[]}`), nil, `service/dns: protocol "tcp"`},
		"provider nowhere":  {strings.Replace(plain, `["127.0.0.1:1"]`, `[]`, 1), nil, `provider "forge" of kind "cert": no address`},
		"address, no port":  {strings.Replace(plain, `["127.0.0.1:1"]`, `["127.0.0.1"]`, 1), nil, `provider "forge" of kind "cert": address "127.0.0.1", want host:port`},
		"endpoint nowhere":  {forwarder("", `{"id":"spiffe://demo.flor/service/dns","callers":[],"listen":"127.0.0.1:53","endpoints":[[]]}`), nil, `reach spiffe://demo.flor/service/dns: no address`},
		"endpoint, port 0":  {forwarder("", `{"id":"spiffe://demo.flor/service/dns","callers":[],"listen":"127.0.0.1:53","endpoints":[["a:0"]]}`), nil, `address "a:0", want host:port`},
		"listen on a name":  {strings.Replace(plain, `"listen":[]`, `"listen":["ursula:4610"]`, 1), nil, `listen "ursula:4610", want an IP address and a port, or :port`},
		"listen, no port":   {strings.Replace(plain, `"listen":[]`, `"listen":[":70000"]`, 1), nil, `listen ":70000", want`},
		"socket over UDP":   {forwarder(`{"id":"spiffe://demo.flor/service/dns","protocol":"udp","upstream":"unix:/run/dns","allow":[]}`, ""), nil, `upstream "unix:/run/dns" takes no datagrams`},
		"port twice":        {forwarder(`{"id":"spiffe://demo.flor/service/dns","port":"a","upstream":"[::1]:53","allow":[]},{"id":"spiffe://demo.flor/service/dns","port":"a","upstream":"[::1]:53","allow":[]}`, ""), nil, `port "a": given twice`},
		"port of no name":   {forwarder(`{"id":"spiffe://demo.flor/service/dns","port":"a","upstream":"[::1]:53","allow":[]},{"id":"spiffe://demo.flor/service/dns","upstream":"[::1]:53","allow":[]}`, ""), nil, `port "" beside others`},
		"port beside none":  {forwarder(`{"id":"spiffe://demo.flor/service/dns","upstream":"[::1]:53","allow":[]},{"id":"spiffe://demo.flor/service/dns","port":"a","upstream":"[::1]:53","allow":[]}`, ""), nil, `port "a" beside others`},
		"port, no label":    {forwarder(`{"id":"spiffe://demo.flor/service/dns","port":"A:b","upstream":"[::1]:53","allow":[]}`, ""), nil, `port "A:b", want a lower-case DNS label`},

		"relay of a node":    {relayed(`"id":"spiffe://demo.flor/vertex/gate"`, `"id":"spiffe://demo.flor/node/gate"`), nil, `relay "gate": id spiffe://demo.flor/node/gate, want the vertex of that name`},
		"relay of another":   {relayed(`"id":"spiffe://demo.flor/vertex/gate"`, `"id":"spiffe://demo.flor/vertex/gate2"`), nil, `relay "gate": id spiffe://demo.flor/vertex/gate2, want`},
		"relay nowhere":      {relayed(`"addresses":["a:1"]`, `"addresses":[]`), nil, `relay "gate": no address`},
		"uplink unknown":     {relayed(`"uplinks":["gate"]`, `"uplinks":["gate3"]`), nil, `uplink "gate3": not among the relays`},
		"uplink twice":       {relayed(`"uplinks":["gate"]`, `"uplinks":["gate","gate"]`), nil, `uplink "gate": given twice, or not sorted`},
		"relays as a node":   {relayed(`"relay":{"id":"spiffe://demo.flor/vertex/ursula"`, `"relay":{"id":"spiffe://demo.flor/node/ursula"`), nil, `relay: id spiffe://demo.flor/node/ursula, want a vertex`},
		"route, no label":    {relayed(`"label":"`+labelA, `"label":"vault`), nil, `route vault: label "vault", want 32 hex digits`},
		"route twice":        {relayed(`"label":"`+labelB, `"label":"`+labelA), nil, `route ` + labelA + `: given twice, or not sorted`},
		"route to a service": {relayed(`"to":"spiffe://demo.flor/node/vault"`, `"to":"spiffe://demo.flor/service/vault"`), nil, `to spiffe://demo.flor/service/vault, want a node or a vertex`},
		"route on from node": {relayed(`"to":"spiffe://demo.flor/node/vault"`, `"to":"spiffe://demo.flor/node/vault","next":"`+labelB+`"`), nil, `next "` + labelB + `" beside spiffe://demo.flor/node/vault, want none`},
		"route to no label":  {relayed(`"next":"`, `"next":"x`), nil, `next: label "x`},
		"route to no relay":  {relayed(`"to":"spiffe://demo.flor/vertex/gate"`, `"to":"spiffe://demo.flor/vertex/far"`), nil, `to spiffe://demo.flor/vertex/far: not among the relays`},
		"route for nobody":   {relayed(`"from":["spiffe://demo.flor/node/a"]`, `"from":[]`), nil, `no from`},
		"route for a user":   {relayed(`"from":["spiffe://demo.flor/node/a"]`, `"from":["spiffe://demo.flor/user/a"]`), nil, `from spiffe://demo.flor/user/a, want a node or a vertex`},
		"path by nothing":    {relayed(`"by":["gate"]`, `"by":[]`), nil, `path by [], want one relay or two`},
		"path by three":      {relayed(`"by":["gate"]`, `"by":["gate","b","c"]`), nil, `path by [gate b c], want one relay or two`},
		"path in a circle":   {relayed(`"by":["gate"]`, `"by":["gate","gate"]`), nil, `path by [gate gate], want one relay or two`},
		"path by no relay":   {relayed(`"by":["gate"]`, `"by":["far"]`), nil, `"far" is not among the relays`},
		"path, no label":     {relayed(`"by":["gate"],"label":"`, `"by":["gate"],"label":"x`), nil, `path by [gate]: label "x`},
		"name in clear":      {relayed(`"opaqueName":"`+labelB, `"opaqueName":"wiki`), nil, `reach spiffe://demo.flor/service/dns: opaqueName "wiki", want 32 hex digits`},
		"no opaque name":     {relayed(`,"opaqueName":"`+labelB+`"`, ""), nil, `reach spiffe://demo.flor/service/dns: opaqueName "", want 32 hex digits`},
		"published in clear": {relayed(`"opaqueName":"`+labelA, `"opaqueName":"dns`), nil, `publish spiffe://demo.flor/service/dns: opaqueName "dns", want 32 hex digits`},
	} {
		_, err := document.Open(envelope(t, c.body, c.change), []byte(c.body), "")
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	d, err := document.Open(envelope(t, plain, nil), []byte(plain), "")
	if err != nil {
		t.Fatal(err)
	}
	if m := d.Manifest(); m.Needs[0].ID != "cert-node" {
		t.Errorf("manifest: %+v", m)
	}
	if _, err := document.Open(envelope(t, relayed("", ""), nil), []byte(relayed("", "")), ""); err != nil {
		t.Errorf("relays: %v", err)
	}
	dir := t.TempDir()
	if err := errors.Join(d.Write(dir), os.Rename(filepath.Join(dir, "manifest.json"), filepath.Join(dir, "policy.json")),
		os.Rename(filepath.Join(dir, "manifest.envelope.json"), filepath.Join(dir, "policy.envelope.json"))); err != nil {
		t.Fatal(err)
	}
	if _, err := document.Read(dir, document.DocPolicy); err == nil || !strings.Contains(err.Error(), "is a manifest, want a policy") {
		t.Errorf("a manifest read as a policy: %v", err)
	}
}

// TestReadOneGeneration checks that Read never mixes the files of two documents while a symbolic
// link is switched between them.
func TestReadOneGeneration(t *testing.T) {
	dir := t.TempDir()
	link := filepath.Join(dir, "current")
	for i, id := range []string{"a", "b"} {
		text := fmt.Sprintf(body, need(id, ""))
		d, err := document.Open(envelope(t, text, nil), []byte(text), "")
		if err != nil {
			t.Fatal(err)
		}
		gen := filepath.Join(dir, fmt.Sprint("gen-", i))
		if err := errors.Join(os.Mkdir(gen, 0o755), d.Write(gen)); err != nil {
			t.Fatal(err)
		}
	}
	switchTo := func(i int) {
		if err := errors.Join(os.Symlink(fmt.Sprint("gen-", i%2), link+".new"), os.Rename(link+".new", link)); err != nil {
			t.Error(err)
		}
	}
	switchTo(0)
	done := make(chan struct{})
	var switching sync.WaitGroup
	defer switching.Wait()
	defer close(done)
	switching.Go(func() {
		for i := 1; ; i++ {
			select {
			case <-done:
				return
			default:
				switchTo(i)
			}
		}
	})
	for range 2000 {
		if _, err := document.Read(link, document.DocManifest); err != nil {
			t.Fatal(err)
		}
	}
}

// TestSigning checks the text that describes the keys with which a manifest was signed.
func TestSigning(t *testing.T) {
	first, second := kit.SigningKey("demo-1"), kit.SigningKey("demo-2")
	manifest := func(threshold int, keys ...signature.SecretKey) document.Document {
		m := document.Manifest{Cluster: "demo", Host: "ursula", TrustDomain: kit.Domain, Identity: document.Identity{ID: kit.ID("node/ursula")},
			Providers: map[string]map[string]document.Provider{}, Trust: document.Trust{Threshold: threshold}}
		for _, k := range []signature.SecretKey{first, second} {
			m.Trust.SigningKeys = append(m.Trust.SigningKeys, k.ToPublicKey().String())
		}
		envelope, body, _ := kit.Document(7, m).Bytes()
		var signatures []string
		for _, k := range keys {
			sig, err := k.Sign(rand.Reader, document.SignedText(envelope))
			if err != nil {
				t.Fatal(err)
			}
			signatures = append(signatures, sig.String())
		}
		d, err := document.Open(envelope, body, strings.Join(signatures, " "))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for want, d := range map[string]document.Document{
		"": manifest(1, first),
		"signed by demo-1, demo-2 (2 keys must sign)":                      manifest(2, second, first, kit.SigningKey("thief-1")),
		"signed by none of its keys (2 keys must sign)":                    manifest(2, kit.SigningKey("former-1")),
		"deployed without signatures (2 keys must sign what is published)": manifest(2),
	} {
		if got := d.Signing(); got != want {
			t.Errorf("got %q, want %q", got, want)
		}
	}
}

func TestVerify(t *testing.T) {
	text := fmt.Sprintf(body, "")
	env := envelope(t, text, nil)
	secret := kit.SigningKey("demo-1")
	public, other := secret.ToPublicKey(), kit.SigningKey("demo-1").ToPublicKey()
	sig, err := secret.Sign(rand.Reader, document.SignedText(env))
	if err != nil {
		t.Fatal(err)
	}
	open := func(env []byte, sig string) document.Document {
		d, err := document.Open(env, []byte(text), sig)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	good := open(env, sig.String())
	if err := good.Verify(signers.Any(other.String(), public.String())); err != nil {
		t.Error(err)
	}
	for name, err := range map[string]error{
		"not signed":     open(env, "").Verify(signers.Any(public.String())),
		"no pins":        good.Verify(signers.Set{}),
		"other key":      good.Verify(signers.Any(other.String())),
		"not a pin":      good.Verify(signers.Any("demo-1")),
		"garbled":        open(env, "demo-1:AAAA").Verify(signers.Any(public.String())),
		"other envelope": open(envelope(t, text, func(e *document.Envelope) { e.Serial = 8 }), sig.String()).Verify(signers.Any(public.String())),
	} {
		if err == nil {
			t.Errorf("%s: verified", name)
		}
	}
	// A key of small order: a forged signature is valid for one message in four.
	zero := signature.PublicKey{Name: "demo-1", Data: make([]byte, ed25519.PublicKeySize)}
	forged := signature.Signature{Name: "demo-1", Data: append([]byte{1}, make([]byte, ed25519.SignatureSize-1)...)}
	serial := int64(4000000000)
	forgery := func() []byte { return envelope(t, text, func(e *document.Envelope) { e.Serial = serial }) }
	for !zero.Verify(document.SignedText(forgery()), forged) {
		serial++
	}
	if err := open(forgery(), forged.String()).Verify(signers.Any(zero.String(), public.String())); err == nil || !strings.Contains(err.Error(), "small order") {
		t.Errorf("a document that nobody signed: got %v", err)
	}
	if err := good.Verify(signers.Any(zero.String(), public.String())); err != nil {
		t.Errorf("beside a key that anybody can sign for: %v", err)
	}
	dir := t.TempDir()
	if err := good.Write(dir); err != nil {
		t.Fatal(err)
	}
	back, err := document.Read(dir, document.DocManifest)
	if err != nil {
		t.Fatal(err)
	}
	e1, b1, s1 := good.Bytes()
	e2, b2, s2 := back.Bytes()
	if !bytes.Equal(e1, e2) || !bytes.Equal(b1, b2) || s1 != s2 {
		t.Error("a written document reads back differently")
	}
}

func TestNewer(t *testing.T) {
	e := func(serial int64, digest string) document.Envelope {
		return document.Envelope{Serial: serial, Digest: digest}
	}
	for _, c := range []struct {
		a, b document.Envelope
		want bool
	}{
		{e(2, "a"), e(1, "b"), true}, {e(1, "b"), e(2, "a"), false},
		{e(1, "b"), e(1, "a"), true}, {e(1, "a"), e(1, "b"), false}, {e(1, "a"), e(1, "a"), false},
	} {
		if c.a.Newer(c.b) != c.want {
			t.Errorf("%v newer than %v: %v", c.a, c.b, !c.want)
		}
	}
}

func FuzzOpen(f *testing.F) {
	text := fmt.Sprintf(body, need("cert-node", ""))
	f.Add(envelope(f, text, nil), []byte(text))
	f.Add([]byte(`{}`), []byte(`{}`))
	f.Fuzz(func(t *testing.T, env, body []byte) {
		if d, err := document.Open(env, body, ""); err == nil && d.Envelope.Digest != document.Digest(body) {
			t.Fatal("opened with another body's digest")
		}
		var m document.Manifest
		_ = strictjson.Decode(body, &m)
	})
}

// TestRereadDecodesWhatChanged checks that Reread returns the same document while its files are
// unchanged, and another one as soon as any byte of them changes.
func TestRereadDecodesWhatChanged(t *testing.T) {
	l := hostdir.Layout(t.TempDir())
	if _, err := l.Manifest(); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("no manifest yet: %v", err)
	}
	gen := filepath.Join(l.Documents(), "gen-1")
	if err := errors.Join(os.MkdirAll(gen, 0o755), os.Symlink("gen-1", hostdir.Current(l.Documents()))); err != nil {
		t.Fatal(err)
	}
	text := fmt.Sprintf(body, need("cert-node", ""))
	d, err := document.Open(envelope(t, text, nil), []byte(text), "")
	if err := errors.Join(err, d.Write(gen)); err != nil {
		t.Fatal(err)
	}
	first, err := l.Manifest()
	if err != nil {
		t.Fatal(err)
	}
	same, err := l.Refresh(first)
	if err != nil || &same.Manifest().Needs[0] != &first.Manifest().Needs[0] {
		t.Errorf("the same bytes are decoded again: %v", err)
	}
	if err := os.WriteFile(filepath.Join(gen, "manifest.json"), []byte("{}"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Refresh(first); err == nil || !strings.Contains(err.Error(), "the body was changed") {
		t.Errorf("a body that was changed on disk: %v", err)
	}
}
