package hostapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
)

// Request is for one need. Body is the need's request with what the host adds
// to it, such as a CSR. Rotation requests another secret than the one in force: it is the
// number of the rotation that this makes, one more than the last. Proof is set on enrolment, Device on every other request; they
// are no part of what makes two requests the same.
type Request struct {
	Need       string          `json:"need"`
	Serial     int64           `json:"serial"` // of the host's manifest
	Generation int             `json:"generation"`
	Rotation   int             `json:"rotation,omitempty"`
	Body       json.RawMessage `json:"body"`
	Proof      *Proof          `json:"proof,omitempty"`
	Device     string          `json:"device,omitempty"` // proof of a DeviceStatement

	// IdempotencyKey is Key of whoever sends the request; empty to have Client compute it.
	IdempotencyKey string `json:"-"`
}

// CertBody is the body of a request for an SVID.
type CertBody struct {
	ID  spiffe.ID `json:"id"`
	CSR string    `json:"csr"` // PEM, PKCS #10 (RFC 2986), signed by the SVID's key
}

// ValueRotation is the value of an answer that has the number of the rotation in force, in
// decimal; without it there was none.
const ValueRotation = "rotation"

// Answer is what fulfils a need. Expires is in Unix seconds, zero for never.
type Answer struct {
	Values  map[string]string `json:"values"`
	Expires int64             `json:"expires,omitempty"`
}

// Artifact is the answer of GET /config/artifact/<node> and of GET /config/watch: the node's
// documents.
type Artifact struct {
	Documents []SignedDocument `json:"documents"`

	// Revocations is the cluster's list, where it is newer than the node's. Without documents
	// beside it the node has those.
	Revocations *trust.SignedRevocations `json:"revocations,omitempty"`

	// NotModified is set by Client instead of Documents when the provider has those that
	// the request named.
	NotModified bool `json:"-"`

	// Revision is set by Client where the answer is that of a watch: the next goes on there.
	Revision int64 `json:"-"`
}

// Unchanged reports whether the node has the documents that the provider has for it.
func (a Artifact) Unchanged() bool {
	return a.NotModified || len(a.Documents) == 0 && a.Revocations != nil
}

// Tag is the entity tag (RFC 9110 section 8.8.3) of the artifact.
func (a Artifact) Tag() string {
	var envelopes [][]byte
	for _, d := range a.Documents {
		envelopes = append(envelopes, []byte(d.Envelope))
	}
	return Tag(envelopes...)
}

// Tag is the entity tag of documents with these envelopes, in any order: "sha256-…" over
// the sorted lines, quotes included. An envelope has the digest of its body.
func Tag(envelopes ...[]byte) string {
	sorted := slices.SortedFunc(slices.Values(envelopes), bytes.Compare)
	return `"` + document.Digest(bytes.Join(sorted, []byte("\n"))) + `"`
}

// Reported is the answer of POST /config/report.
type Reported struct {
	Sequence int64 `json:"sequence"` // the highest of the node's reports

	// Rotate are the rotations of needs' secrets that an operator ordered, by need: the host
	// requests each that is its next.
	Rotate map[string]int `json:"rotate,omitempty"`
}

// SignedDocument is a document byte for byte, with its signature.
type SignedDocument struct {
	Envelope  string `json:"envelope"`
	Body      string `json:"body"`
	Signature string `json:"signature"`
}

// Key is the request's idempotency key: lower-case hex SHA-256 over the lines
// caller, need and the canonical JSON of {"body":…,"generation":…,"rotation":…}, the last
// only where it is requested. Both numbers are part of it, so that another secret is a
// request of its own. The body is one that strictjson.Decode takes, as in a request that it took.
func (r Request) Key(caller spiffe.ID) (string, error) {
	body, err := canonical(r.Body)
	if err != nil {
		return "", fmt.Errorf("need %s: body: %w", r.Need, err)
	}
	h := sha256.New()
	fmt.Fprintf(h, "%s\n%s\n{\"body\":%s,\"generation\":%d", caller, r.Need, body, r.Generation)
	if r.Rotation != 0 {
		fmt.Fprintf(h, ",\"rotation\":%d", r.Rotation)
	}
	fmt.Fprint(h, "}")
	return hex.EncodeToString(h.Sum(nil)), nil
}

// Asked is the canonical JSON of a body without what the host adds to its need's
// request, which is a field "csr". It equals Canonical of the request. The body is one that
// strictjson.Decode takes.
func Asked(body []byte) ([]byte, error) {
	v, err := parse(body)
	if err != nil {
		return nil, err
	}
	fields, ok := v.(map[string]any)
	if !ok {
		return nil, errors.New("want an object")
	}
	delete(fields, "csr")
	return encode(fields)
}

// Canonical writes a JSON value in one form: keys sorted by their UTF-8 bytes, no
// space, integers of 64 bits, and in strings the escapes \" \\ \b \f \n \r \t,
// \u00xx for other controls, \u2028 and \u2029, nothing else. It is RFC 8785 for all
// that documents hold. Canonical(Canonical(x)) == Canonical(x).
func Canonical(b []byte) ([]byte, error) {
	var raw json.RawMessage
	if err := strictjson.Decode(b, &raw); err != nil {
		return nil, err
	}
	return canonical(raw)
}

// canonical returns the canonical form of a value that strictjson.Decode takes.
func canonical(b []byte) ([]byte, error) {
	v, err := parse(b)
	if err != nil {
		return nil, err
	}
	return encode(v)
}

// parse reads a JSON value, with numbers as they are written.
func parse(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// encode writes a value that was read so, in its canonical form.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
