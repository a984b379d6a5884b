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

// Document is a manifest or a policy of a host, together with its envelope. Documents are created
// only by Open and Read, which check that digest, kind, cluster and host are the same in the
// envelope and in the body. Copies of a Document share memory, so callers must not modify it.
type Document struct {
	Envelope  Envelope
	raw, body []byte
	signature string
	manifest  *Manifest
	policy    *Policy
}

// Open decodes the envelope and the body of a document, and checks that they belong together. It
// does not verify the signature, which Verify does. The signature is empty for a document that did
// not come over the network.
//
// If only a newer release understands the format of the document, the error is a *NewerFormatError.
// The returned Document then has no decoded content, but can still be verified and passed on.
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

// decode decodes the body of the document, and returns the cluster and the host that the body
// names.
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

// Verify returns an error unless enough of the pinned keys have signed the document.
func (d Document) Verify(pins signers.Set) error { return d.VerifyAny(pins) }

// VerifyAny verifies the signatures of the document against several sets of pinned keys. It returns
// nil if at least one set accepts them.
func (d Document) VerifyAny(pins ...signers.Set) error {
	return signers.VerifyAny(fmt.Sprintf("%s of %s, serial %d", d.Envelope.Kind, d.Envelope.Host, d.Envelope.Serial), SignedText(d.raw), d.signature, pins...)
}

// Signing returns a text for people that names the keys with which the manifest was signed, and the
// number of keys that must sign, such as "signed by alice, bob (2 keys must sign)". It returns ""
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

// Manifest returns the manifest in the document. It returns the zero Manifest if the document is
// not a manifest.
func (d Document) Manifest() (m Manifest) {
	if d.manifest != nil {
		m = *d.manifest
	}
	return m
}

// Policy returns the policy in the document. It returns the zero Policy if the document is not a
// policy.
func (d Document) Policy() (p Policy) {
	if d.policy != nil {
		p = *d.policy
	}
	return p
}

// Bytes returns the bytes of the document's envelope and body and its signature, exactly as they
// were read.
func (d Document) Bytes() (envelope, body []byte, signature string) {
	return d.raw, d.body, d.signature
}

// File extensions of a document's body, envelope and signature. A file is named after the kind of
// its document, for example manifest.json.
const (
	extBody      = ".json"
	extEnvelope  = ".envelope.json"
	extSignature = ".sig"
)

// FileNames returns the names of the files in which a document of the given kind is stored: its
// body, its envelope and its signature, in this order.
func FileNames(kind string) []string {
	return []string{kind + extBody, EnvelopeFile(kind), kind + extSignature}
}

// EnvelopeFile returns the name of the file that contains the envelope of a document of the given
// kind. A program that waits for a new version of the document watches this file.
func EnvelopeFile(kind string) string { return kind + extEnvelope }

// Files returns the content of the files in which the document is stored, by file name. A document
// without a signature has no signature file.
func (d Document) Files() map[string][]byte {
	kind := d.Envelope.Kind
	files := map[string][]byte{kind + extBody: d.body, EnvelopeFile(kind): d.raw}
	if d.signature != "" {
		files[kind+extSignature] = []byte(d.signature)
	}
	return files
}

// Read reads and opens the document of the given kind from the directory dir. It returns
// fs.ErrNotExist if the directory has no such document. If dir is a symbolic link, Read resolves
// the link once, so that all files come from the same generation.
func Read(dir, kind string) (Document, error) { return Reread(Document{}, dir, kind) }

// Reread is like Read, but returns the document old if its files in dir have not changed since it
// was read. This avoids the cost of decoding the document again.
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

// ReadEnvelope reads the envelope of the document of the given kind from the directory dir. It does
// not read the body.
func ReadEnvelope(dir, kind string) (Envelope, error) {
	b, err := os.ReadFile(filepath.Join(dir, EnvelopeFile(kind)))
	if err != nil {
		return Envelope{}, err
	}
	return ParseEnvelope(b)
}

// Write writes the files of the document to the directory dir. The files are not written
// atomically, so no reader may use the directory yet. See package delivery.
func (d Document) Write(dir string) error {
	for name, b := range d.Files() {
		if err := os.WriteFile(filepath.Join(dir, name), b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
