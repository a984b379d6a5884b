package document

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/nix-community/go-nix/pkg/storepath"

	"github.com/florete/florete/internal/strictjson"
)

// EnvelopeSchema is the schema that Envelope describes.
const EnvelopeSchema = "florete.envelope/v1"

// The kinds of document.
const (
	DocManifest = "manifest"
	DocPolicy   = "policy"
)

// Envelope names the body of one document and orders it among its versions.
type Envelope struct {
	Schema  string `json:"schema"`
	Format  Format `json:"format"` // of envelope and body
	Cluster string `json:"cluster"`
	Host    string `json:"host"`
	Kind    string `json:"kind"`
	Digest  string `json:"digest"` // of the body, "sha256-<base64>" (W3C SRI)
	Serial  int64  `json:"serial"`
	Rev     string `json:"rev"` // of the flake, empty when it has none

	// Closure is the store path of the host's system, named when a manifest is published. It
	// is no part of the body, which may be in that system.
	Closure string `json:"closure,omitempty"`
}

// Digest is the SRI digest of b, as builtins.hashString and
// builtins.convertHash write it.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// CheckStorePath is an error unless p is a path of the Nix store, and nothing below it.
func CheckStorePath(p string) error {
	name, ok := strings.CutPrefix(p, storepath.StoreDir+"/")
	if ok = ok && !strings.Contains(name, "/"); ok {
		_, err := storepath.FromString(name)
		ok = err == nil
	}
	if !ok {
		return fmt.Errorf("%.200q, want %s/<hash>-<name>", p, storepath.StoreDir)
	}
	return nil
}

// Newer reports whether e comes after o: by serial, then by digest.
func (e Envelope) Newer(o Envelope) bool {
	if e.Serial != o.Serial {
		return e.Serial > o.Serial
	}
	return strings.Compare(e.Digest, o.Digest) > 0
}

// SignedText is what a document's signature covers.
func SignedText(envelope []byte) string {
	return "florete-envelope-v1\n" + string(envelope)
}

// ParseEnvelope decodes an envelope of any format.
func ParseEnvelope(b []byte) (Envelope, error) {
	var e Envelope
	if err := strictjson.Decode(b, &e); err != nil {
		return e, fmt.Errorf("envelope: %w", err)
	}
	if e.Schema != EnvelopeSchema {
		return e, fmt.Errorf("envelope: schema %q, want %q: unsupported envelope schema", e.Schema, EnvelopeSchema)
	}
	if e.Kind != DocManifest && e.Kind != DocPolicy {
		return e, fmt.Errorf("envelope: kind %q, want %q or %q", e.Kind, DocManifest, DocPolicy)
	}
	if e.Closure != "" {
		if err := CheckStorePath(e.Closure); err != nil {
			return e, fmt.Errorf("envelope: closure: %w", err)
		}
	}
	return e, nil
}

// Reported is a document in force.
type Reported struct {
	Kind   string `json:"kind"`
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`
	Rev    string `json:"rev"`
}

// ReportedOf is the document of an envelope.
func ReportedOf(e Envelope) Reported {
	return Reported{Kind: e.Kind, Serial: e.Serial, Digest: e.Digest, Rev: e.Rev}
}
