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

// Request is a request for one need. Body is the need's request with additions by the host, such as
// a CSR. A Rotation above zero requests a new secret: it is the number of the rotation to make, one
// more than the last. Proof is set on enrolment, Device in every other request; neither is part of
// the idempotency key.
type Request struct {
	Need       string          `json:"need"`
	Serial     int64           `json:"serial"` // of the host's manifest
	Generation int             `json:"generation"`
	Rotation   int             `json:"rotation,omitempty"`
	Body       json.RawMessage `json:"body"`
	Proof      *Proof          `json:"proof,omitempty"`
	Device     string          `json:"device,omitempty"` // proof of a DeviceStatement

	// IdempotencyKey is the result of Key for the node that sends the request; if empty, Client
	// computes it.
	IdempotencyKey string `json:"-"`
}

// CertBody is the body of a request for an SVID.
type CertBody struct {
	ID  spiffe.ID `json:"id"`
	CSR string    `json:"csr"` // PEM, PKCS #10 (RFC 2986), signed by the SVID's key
}

// ValueRotation is the name of the value that contains the number of the rotation in force, in
// decimal. An answer without it has never been rotated.
const ValueRotation = "rotation"

// Answer fulfils a need. Expires is in Unix seconds, zero for never.
type Answer struct {
	Values  map[string]string `json:"values"`
	Expires int64             `json:"expires,omitempty"`
}

// Artifact is the answer of GET /config/artifact/<node> and GET /config/watch. It contains the
// node's documents.
type Artifact struct {
	Documents []SignedDocument `json:"documents"`

	// Revocations is the cluster's revocation list if it is newer than the node's. If there are no
	// documents beside it, the node's documents are unchanged.
	Revocations *trust.SignedRevocations `json:"revocations,omitempty"`

	// NotModified is set by Client, without Documents, if the provider has the same documents as
	// the node.
	NotModified bool `json:"-"`

	// Has is set by Client beside NotModified to the tag of the documents that the node has.
	Has string `json:"-"`

	// Revision is set by Client for the answer to a watch. The next watch continues from it.
	Revision int64 `json:"-"`
}

// Unchanged reports whether the node already has the documents that the provider has for it.
func (a Artifact) Unchanged() bool {
	return a.NotModified || len(a.Documents) == 0 && a.Revocations != nil
}

// Tag returns the entity tag (RFC 9110, section 8.8.3) of the documents.
func (a Artifact) Tag() string {
	var envelopes [][]byte
	for _, d := range a.Documents {
		envelopes = append(envelopes, []byte(d.Envelope))
	}
	return Tag(envelopes...)
}

// Tag returns the entity tag of documents with these envelopes, in any order: "sha256-…", with the
// quotes, over the sorted envelopes joined by newlines. An envelope contains the digest of its
// body.
func Tag(envelopes ...[]byte) string {
	sorted := slices.SortedFunc(slices.Values(envelopes), bytes.Compare)
	return `"` + document.Digest(bytes.Join(sorted, []byte("\n"))) + `"`
}

// Reported is the answer of POST /config/report.
type Reported struct {
	Sequence int64 `json:"sequence"` // highest sequence number among the node's reports

	// Rotate contains the rotations that an operator ordered, by need. The host requests a rotation
	// if its number is the need's next one.
	Rotate map[string]int `json:"rotate,omitempty"`
}

// SignedDocument is a document as exact text, with its signature.
type SignedDocument struct {
	Envelope  string `json:"envelope"`
	Body      string `json:"body"`
	Signature string `json:"signature"`
}

// Key returns the request's idempotency key: the lower-case hex SHA-256 over the lines caller, need
// and the canonical JSON of {"body":…,"generation":…,"rotation":…}. The last field is present only
// if a rotation is requested. Generation and rotation are included so that a request for a new
// secret has a key of its own. The body must be valid for strictjson.Decode.
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

// Asked returns the canonical JSON of a body without the field "csr", which the host adds to its
// need's request. It equals Canonical of the request. The body must be valid for strictjson.Decode.
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

// Canonical returns a JSON value in canonical form: keys sorted by their UTF-8 bytes, no white
// space, integers of at most 64 bits, and in strings the escapes \" \\ \b \f \n \r \t, \u00xx for
// other control characters, \u2028 and \u2029, and no others. For the values that documents
// contain, it is RFC 8785. Canonical(Canonical(x)) == Canonical(x).
func Canonical(b []byte) ([]byte, error) {
	var raw json.RawMessage
	if err := strictjson.Decode(b, &raw); err != nil {
		return nil, err
	}
	return canonical(raw)
}

// canonical returns the canonical form of a value that is valid for strictjson.Decode.
func canonical(b []byte) ([]byte, error) {
	v, err := parse(b)
	if err != nil {
		return nil, err
	}
	return encode(v)
}

// parse decodes a JSON value and keeps numbers as they are written.
func parse(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// encode writes a value from parse in canonical form.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
