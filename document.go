package florete

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"
)

// Document is an envelope with the body it names. Only Open and Read make one, so
// digest, kind, cluster and host of the two always agree.
type Document struct {
	Envelope  Envelope
	raw, body []byte
	signature string
}

// Open checks that envelope and body belong together. The signature, empty for a
// document that did not come over the network, is checked by Verify.
func Open(envelope, body []byte, signature string) (Document, error) {
	e, err := parseEnvelope(envelope)
	if err != nil {
		return Document{}, err
	}
	if got := Digest(body); got != e.Digest {
		return Document{}, fmt.Errorf("%s of %s: digest is %s, the envelope says %s: the body was changed", e.Kind, e.Host, got, e.Digest)
	}
	d := Document{Envelope: e, raw: envelope, body: body, signature: signature}
	var cluster, host string
	switch e.Kind {
	case DocManifest:
		m, err := d.Manifest()
		if err != nil {
			return Document{}, err
		}
		cluster, host = m.Cluster, m.Host
	case DocPolicy:
		p, err := d.Policy()
		if err != nil {
			return Document{}, err
		}
		cluster, host = p.Cluster, p.Host
	}
	if cluster != e.Cluster || host != e.Host {
		return Document{}, fmt.Errorf("%s: body is for %s/%s, envelope for %s/%s", e.Kind, cluster, host, e.Cluster, e.Host)
	}
	return d, nil
}

// Verify checks the signature against pinned keys ("name:base64"). One that anybody can
// sign for verifies nothing.
func (d Document) Verify(keys []string) error {
	what := fmt.Sprintf("%s of %s, serial %d", d.Envelope.Kind, d.Envelope.Host, d.Envelope.Serial)
	if d.signature == "" {
		return fmt.Errorf("%s: not signed", what)
	}
	sig, err := signature.ParseSignature(d.signature)
	if err != nil {
		return fmt.Errorf("%s: signature: %w", what, err)
	}
	var weak error
	for _, k := range keys {
		pin, err := signature.ParsePublicKey(k)
		if err != nil {
			return fmt.Errorf("pinned key %q: %w", k, err)
		}
		if err := CheckEd25519(pin.Data); err != nil {
			weak = fmt.Errorf(", and %q is no key: %w", k, err)
			continue
		}
		// Each pin, not signature.VerifyFirst: two pins may share a name while keys rotate.
		if pin.Verify(SignedText(d.raw), sig) {
			return nil
		}
	}
	if weak != nil {
		return fmt.Errorf("%s: signature by %q does not verify with any other pinned key%w", what, sig.Name, weak)
	}
	return fmt.Errorf("%s: signature by %q does not verify with any pinned key", what, sig.Name)
}

// Manifest decodes the body of a manifest.
func (d Document) Manifest() (Manifest, error) {
	var m Manifest
	if err := d.decode(DocManifest, &m); err != nil {
		return Manifest{}, err
	}
	if err := m.check(); err != nil {
		return Manifest{}, fmt.Errorf("manifest of %s: %w", d.Envelope.Host, err)
	}
	return m, nil
}

// Policy decodes the body of a policy.
func (d Document) Policy() (Policy, error) {
	var p Policy
	return p, d.decode(DocPolicy, &p)
}

func (d Document) decode(kind string, v any) error {
	if d.Envelope.Kind != kind {
		return fmt.Errorf("document of %s: is a %s, want a %s", d.Envelope.Host, d.Envelope.Kind, kind)
	}
	if err := Decode(d.body, v); err != nil {
		return fmt.Errorf("%s of %s: %w", kind, d.Envelope.Host, err)
	}
	return nil
}

// Bytes are the document's parts as they came.
func (d Document) Bytes() (envelope, body []byte, signature string) {
	return d.raw, d.body, d.signature
}

// A directory holds a document of a kind as three files.
func files(dir, kind string) (body, envelope, sig string) {
	base := filepath.Join(dir, kind)
	return base + ".json", base + ".envelope.json", base + ".sig"
}

// Read opens the document of a kind in dir: <kind>.json, <kind>.envelope.json and,
// when it is signed, <kind>.sig. The error is fs.ErrNotExist when there is none. A link
// to dir is followed once, so that all of it is of one generation.
func Read(dir, kind string) (Document, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return Document{}, err
	}
	bodyPath, envelopePath, sigPath := files(dir, kind)
	body, err := os.ReadFile(bodyPath)
	if err != nil {
		return Document{}, err
	}
	envelope, err := os.ReadFile(envelopePath)
	if err != nil {
		return Document{}, err
	}
	sig, err := os.ReadFile(sigPath)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return Document{}, err
	}
	d, err := Open(envelope, body, string(sig))
	if err != nil {
		return Document{}, fmt.Errorf("%s: %w", dir, err)
	}
	return d, nil
}

// Write puts the document's files in dir, which nobody reads yet: see Layout.
func (d Document) Write(dir string) error {
	bodyPath, envelopePath, sigPath := files(dir, d.Envelope.Kind)
	parts := map[string][]byte{bodyPath: d.body, envelopePath: d.raw}
	if d.signature != "" {
		parts[sigPath] = []byte(d.signature)
	}
	for path, b := range parts {
		if err := os.WriteFile(path, b, 0o644); err != nil {
			return err
		}
	}
	return nil
}
