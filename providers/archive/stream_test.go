package archive_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/tests/kit"
)

// read reads a whole stream.
func read(text string, keys []string) (all []archive.StreamHost, err error) {
	r, err := archive.NewStreamReader(strings.NewReader(text))
	if err != nil {
		return nil, err
	}
	for h, err := range r.All(signers.Any(keys...)) {
		if err != nil {
			return all, err
		}
		all = append(all, h)
	}
	return all, nil
}

// TestStream checks that a reader which trusts the signing key reads all documents that were
// written.
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
	got, err := read(text, pinned)
	if err != nil || len(got) != 2 || got[0].Name != "raishan" || got[1].Name != "ursula" {
		t.Fatalf("%v, %v", got, err)
	}
	envelope, body, signature := made["ursula"][0].Bytes()
	if d := got[1].Documents[0]; d.Envelope != string(envelope) || d.Body != string(body) || d.Signature != signature {
		t.Error("the documents differ")
	}
	lines := strings.SplitAfter(text, "\n")
	for name, c := range map[string]struct {
		text string
		keys []string
		want string
	}{
		"another key":    {text, []string{kit.SigningKey("demo-1").ToPublicKey().String()}, `signature by "demo-1" does not verify with any pinned key`},
		"no pins":        {text, nil, "does not verify"},
		"not signed":     {strings.ReplaceAll(text, `"signature":"`, `"signature":"","x":"`), pinned, "want what florctl publish of the same release writes"},
		"another body":   {strings.Replace(text, "demo.flor", "dema.flor", 1), pinned, "digest"},
		"another host":   {strings.Replace(text, `{"host":"raishan"`, `{"host":"pandora"`, 1), pinned, `"pandora": the manifest is of host "raishan"`},
		"a path":         {strings.Replace(text, `{"host":"raishan"`, `{"host":"../raishan"`, 1), pinned, `"../raishan": not a name`},
		"out of order":   {lines[0] + lines[2] + lines[1], pinned, `"raishan" comes after "ursula"`},
		"twice":          {lines[0] + lines[1] + lines[1], pinned, `"raishan" comes after "raishan"`},
		"another serial": {strings.Replace(text, `"serial":1`, `"serial":2`, 1), pinned, "the stream of demo and 2784011430"},
		"of nowhere":     {strings.Replace(text, `{"cluster":"demo"`, `{"cluster":"prod"`, 1), pinned, "is of cluster demo"},
		"cut short":      {lines[0] + lines[1], pinned, "host 2 of 2: unexpected EOF"},
		"cut in a line":  {lines[0] + lines[1] + lines[2][:99], pinned, "host 2 of 2: unexpected EOF"},
		"too long":       {text + lines[2], pinned, "more follows the 2 hosts"},
		"no documents":   {lines[0] + `{"host":"a","documents":[]}` + "\n", pinned, `"a": has no documents`},
		"no hosts":       {`{"cluster":"demo","serial":1,"hosts":0}` + "\n", pinned, "no host in it"},
		"nothing":        {"", pinned, "unexpected EOF: want what florctl publish of the same release writes"},
		"not JSON":       {"hello\n", pinned, "want what florctl publish of the same release writes"},
	} {
		if _, err := read(c.text, c.keys); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want …%s…", name, err, c.want)
		}
	}
}

// TestStreamOfNewer checks that a document in a format which only a newer release understands is
// signed like all others, and is served to its host.
func TestStreamOfNewer(t *testing.T) {
	k := kit.SigningKey("demo-1")
	made, err := tree(k, now.Unix())
	if err != nil {
		t.Fatal(err)
	}
	d := made["ursula"][0]
	e, body := d.Envelope, `{"anything":"new"}`
	e.Format.Minor = document.NewestFormat.Minor + 1
	e.Digest = document.Digest([]byte(body))
	envelope := kit.JSON(e)
	sign := func(text string) string {
		s, err := k.Sign(nil, document.SignedText([]byte(text)))
		if err != nil {
			t.Fatal(err)
		}
		return s.String()
	}
	stream := func(body, signature string) string {
		return fmt.Sprintf("%s\n%s\n", kit.JSON(archive.Head{Cluster: e.Cluster, Serial: e.Serial, Hosts: 1}),
			kit.JSON(archive.StreamHost{Name: e.Host, Documents: []hostapi.SignedDocument{{Envelope: string(envelope), Body: body, Signature: signature}}}))
	}
	pinned := []string{k.ToPublicKey().String()}
	got, err := read(stream(body, sign(string(envelope))), pinned)
	if err != nil || len(got) != 1 || got[0].Documents[0].Body != body {
		t.Errorf("%+v, %v", got, err)
	}
	for name, text := range map[string]string{
		"signature": stream(body, sign("another")),
		"digest":    stream(`{"anything":"else"}`, sign(string(envelope))),
	} {
		if _, err := read(text, pinned); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
