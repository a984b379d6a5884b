package document

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/nix-community/go-nix/pkg/storepath"

	"github.com/florete/florete/internal/strictjson"
)

// EnvelopeSchema is the value of the field schema in an Envelope.
const EnvelopeSchema = "florete.envelope/v1"

// Kinds of document.
const (
	DocManifest = "manifest"
	DocPolicy   = "policy"
)

// Envelope contains the digest of a document's body, and the serial that orders the versions of the
// document.
type Envelope struct {
	Schema  string `json:"schema"`
	Format  Format `json:"format"` // format of envelope and body
	Cluster string `json:"cluster"`
	Host    string `json:"host"`
	Kind    string `json:"kind"`
	Digest  string `json:"digest"` // digest of the body, "sha256-<base64>" (W3C SRI)
	Serial  int64  `json:"serial"`
	Rev     string `json:"rev"` // revision of the flake, empty if there is none

	// Closure is the store path of the host's system. It is added when a manifest is published. It
	// cannot be in the body, because the system may contain the body.
	Closure string `json:"closure,omitempty"`
}

// Digest returns the digest of b in the form "sha256-<base64>" (W3C SRI), as Nix's
// builtins.convertHash does.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// CheckStorePath returns an error unless p is a path directly below the Nix store, such as
// /nix/store/HASH-NAME.
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

// Newer reports whether e is a later version than o. It compares serials, and digests if those are
// equal.
func (e Envelope) Newer(o Envelope) bool {
	if e.Serial != o.Serial {
		return e.Serial > o.Serial
	}
	return strings.Compare(e.Digest, o.Digest) > 0
}

// SignedText returns the text that is signed for a document with this envelope.
func SignedText(envelope []byte) string {
	return "florete-envelope-v1\n" + string(envelope)
}

// ParseEnvelope decodes an envelope. It also accepts formats that only newer releases understand.
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

// Reported identifies a version of a document in the reports that hosts send.
type Reported struct {
	Kind   string `json:"kind"`
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`
	Rev    string `json:"rev"`
}

// ReportedOf returns the version of the document that has the envelope e.
func ReportedOf(e Envelope) Reported {
	return Reported{Kind: e.Kind, Serial: e.Serial, Digest: e.Digest, Rev: e.Rev}
}
