package document

import (
	"crypto/sha256"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/nix-community/go-nix/pkg/storepath"

	"github.com/florete/florete/internal/strictjson"
)

// EnvelopeSchema is the value of the field "schema" in every envelope that this release reads and
// writes.
const EnvelopeSchema = "florete.envelope/v1"

// Kinds of document. They are the values of the field "kind" in an envelope.
const (
	DocManifest = "manifest"
	DocPolicy   = "policy"
)

// Envelope identifies one version of a host's document. It contains the digest of the document's
// body, and a serial, which grows with each version. The envelope, and not the body, is signed.
type Envelope struct {
	Schema  string `json:"schema"`
	Format  Format `json:"format"` // format of envelope and body
	Cluster string `json:"cluster"`
	Host    string `json:"host"`
	Kind    string `json:"kind"`
	Digest  string `json:"digest"` // digest of the body, "sha256-<base64>" (W3C SRI)
	Serial  int64  `json:"serial"`
	Rev     string `json:"rev"` // revision of the flake, empty if there is none

	// Closure is the store path of the host's system. It is added when a manifest is published,
	// because the manifest itself may be part of that system.
	Closure string `json:"closure,omitempty"`
}

// Digest returns the SHA-256 digest of a text in the form "sha256-<base64>" (W3C Subresource
// Integrity), which Nix's builtins.convertHash also uses.
func Digest(b []byte) string {
	sum := sha256.Sum256(b)
	return "sha256-" + base64.StdEncoding.EncodeToString(sum[:])
}

// CheckStorePath returns an error unless the path is directly below the Nix store, such as
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

// Newer reports whether this envelope belongs to a later version of a document than the other one.
// The version with the higher serial is the later one. For equal serials, the greater digest counts
// as later.
func (e Envelope) Newer(o Envelope) bool {
	if e.Serial != o.Serial {
		return e.Serial > o.Serial
	}
	return strings.Compare(e.Digest, o.Digest) > 0
}

// SignedText returns the text that is signed for a document. The parameter is the encoded envelope
// of the document.
func SignedText(envelope []byte) string {
	return "florete-envelope-v1\n" + string(envelope)
}

// ParseEnvelope decodes and checks the envelope of a document. An envelope whose format only newer
// releases understand is no error, because its document can still be verified and passed on.
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

// Reported identifies one version of a document in the reports that hosts send to providers.
type Reported struct {
	Kind   string `json:"kind"`
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`
	Rev    string `json:"rev"`
}

// ReportedOf returns the Reported of the document version with the envelope e.
func ReportedOf(e Envelope) Reported {
	return Reported{Kind: e.Kind, Serial: e.Serial, Digest: e.Digest, Rev: e.Rev}
}
