package document

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/strictjson"
)

// Document is an envelope with its decoded body. Only Open and Read create a Document, so its
// envelope and body always agree in digest, kind, cluster and host. Copies of a Document share its
// values, so callers must not modify them.
type Document struct {
	Envelope  Envelope
	raw, body []byte
	signature string
	manifest  *Manifest
	policy    *Policy
}

// Open decodes an envelope and a body, and checks that they belong together. It does not check the
// signature, see Verify. The signature is empty for a document that did not come over the network.
//
// If only a newer release can read the document, the error is a *NewerFormatError. The returned
// Document then has no content, but can still be verified and passed on.
func Open(envelope, body []byte, signature string) (Document, error) {
	e, err := ParseEnvelope(envelope)
	if err != nil {
		return Document{}, err
	}
	if got := Digest(body); got != e.Digest {
		return Document{}, fmt.Errorf("%s of %s: digest is %s, the envelope says %s: the body was changed", e.Kind, e.Host, got, e.Digest)
	}
	d := Document{Envelope: e, raw: envelope, body: body, signature: signature}
	if e.Format.Newer(NewestFormat) {
		return d, &NewerFormatError{fmt.Sprintf("%s of %s, serial %d", e.Kind, e.Host, e.Serial), e.Format}
	}
	cluster, host, err := d.decode()
	if err != nil {
		return Document{}, fmt.Errorf("%s of %s: %w", e.Kind, e.Host, err)
	}
	if cluster != e.Cluster || host != e.Host {
		return Document{}, fmt.Errorf("%s: body is for %s/%s, envelope for %s/%s", e.Kind, cluster, host, e.Cluster, e.Host)
	}
	return d, nil
}

// decode decodes the body and returns the cluster and host that it names.
func (d *Document) decode() (cluster, host string, err error) {
	if d.Envelope.Kind == DocPolicy {
		d.policy = new(Policy)
		if err = strictjson.Decode(d.body, d.policy); err == nil {
			err = d.policy.Trust.check()
		}
		return d.policy.Cluster, d.policy.Host, err
	}
	d.manifest = new(Manifest)
	if err = strictjson.Decode(d.body, d.manifest); err == nil {
		err = d.manifest.check()
	}
	return d.manifest.Cluster, d.manifest.Host, err
}

// Verify checks that the document is signed by enough of the pinned keys.
func (d Document) Verify(pins signers.Set) error { return d.VerifyAny(pins) }

// VerifyAny checks that at least one of several sets of pinned keys accepts the document's
// signatures.
func (d Document) VerifyAny(pins ...signers.Set) error {
	return signers.VerifyAny(fmt.Sprintf("%s of %s, serial %d", d.Envelope.Kind, d.Envelope.Host, d.Envelope.Serial), SignedText(d.raw), d.signature, pins...)
}

// Signing describes for people which keys signed a manifest, and how many must sign. It returns ""
// if one key is enough.
func (d Document) Signing() string {
	by := d.Manifest().Trust.Signers()
	if by.Need() == 1 {
		return ""
	}
	if d.signature == "" {
		return fmt.Sprintf("deployed without signatures (%d keys must sign what is published)", by.Need())
	}
	names := strings.Join(by.Signed(SignedText(d.raw), d.signature), ", ")
	return fmt.Sprintf("signed by %s (%d keys must sign)", cmp.Or(names, "none of its keys"), by.Need())
}

// Manifest returns the body of the document if the document is a manifest, and otherwise the zero
// Manifest.
func (d Document) Manifest() (m Manifest) {
	if d.manifest != nil {
		m = *d.manifest
	}
	return m
}

// Policy returns the body of the document if the document is a policy, and otherwise the zero
// Policy.
func (d Document) Policy() (p Policy) {
	if d.policy != nil {
		p = *d.policy
	}
	return p
}

// Bytes returns the envelope, body and signature of the document, unchanged since they were read.
func (d Document) Bytes() (envelope, body []byte, signature string) {
	return d.raw, d.body, d.signature
}

// Extensions of the files in which a document is stored. The files are named after the kind of
// document, such as manifest.json.
const (
	extBody      = ".json"
	extEnvelope  = ".envelope.json"
	extSignature = ".sig"
)

// FileNames returns the names of the three files in which a document is stored: body, envelope and
// signature. The argument is the kind of document.
func FileNames(kind string) []string {
	return []string{kind + extBody, EnvelopeFile(kind), kind + extSignature}
}

// EnvelopeFile returns the name of the file that contains a document's envelope. A program that
// waits for a new version of the document follows this file.
func EnvelopeFile(kind string) string { return kind + extEnvelope }

// Files returns the content of each file of the document, by the file's name. An unsigned document
// has no signature file.
func (d Document) Files() map[string][]byte {
	kind := d.Envelope.Kind
	files := map[string][]byte{kind + extBody: d.body, EnvelopeFile(kind): d.raw}
	if d.signature != "" {
		files[kind+extSignature] = []byte(d.signature)
	}
	return files
}

// Read opens the document in dir that is of the given kind. It returns fs.ErrNotExist if there is
// none. If dir is a symbolic link, Read resolves the link once, so that all files are of the same
// generation.
func Read(dir, kind string) (Document, error) { return Reread(Document{}, dir, kind) }

// Reread is like Read for a caller that has read the document before. If the files in dir still
// have the same bytes, it returns old without decoding anything.
func Reread(old Document, dir, kind string) (Document, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Document{}, err
	}
	envelope, err := os.ReadFile(filepath.Join(dir, EnvelopeFile(kind)))
	if err != nil {
		return Document{}, err
	}
	body, err := os.ReadFile(filepath.Join(dir, kind+extBody))
	if err != nil {
		return Document{}, err
	}
	sig, err := os.ReadFile(filepath.Join(dir, kind+extSignature))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Document{}, err
	}
	if bytes.Equal(envelope, old.raw) && bytes.Equal(body, old.body) && string(sig) == old.signature {
		return old, nil
	}
	d, err := Open(envelope, body, string(sig))
	if err == nil && d.Envelope.Kind != kind {
		err = fmt.Errorf("document of %s: is a %s, want a %s", d.Envelope.Host, d.Envelope.Kind, kind)
	}
	if err != nil {
		return Document{}, fmt.Errorf("%s: %w", dir, err)
	}
	return d, nil
}

// ReadEnvelope reads only the envelope of the document in dir that is of the given kind.
func ReadEnvelope(dir, kind string) (Envelope, error) {
	b, err := os.ReadFile(filepath.Join(dir, EnvelopeFile(kind)))
	if err != nil {
		return Envelope{}, err
	}
	return ParseEnvelope(b)
}

// Write writes the document's files to dir. No reader may use the directory yet, see package
// delivery.
func (d Document) Write(dir string) error {
	for name, b := range d.Files() {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
