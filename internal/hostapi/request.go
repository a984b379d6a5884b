package hostapi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
)

// Request is a host's request for the content of one need, such as a certificate or a secret. Some
// of its fields have special rules:
//
//   - Body contains the need's request from the manifest, with additions by the host, such as a
//     CSR.
//   - Rotation is zero, except to request a new secret. It is then the number of the last rotation
//     plus one.
//   - Proof is set only for enrolment, and Device in all other requests. Neither is part of the
//     idempotency key.
type Request struct {
	Need       string          `json:"need"`
	Serial     int64           `json:"serial"` // serial of the host's manifest
	Generation int             `json:"generation"`
	Rotation   int             `json:"rotation,omitempty"`
	Body       json.RawMessage `json:"body"`
	Proof      *Proof          `json:"proof,omitempty"`
	Device     string          `json:"device,omitempty"` // proof of a DeviceStatement

	// IdempotencyKey is the result of Key for the node that sends the request. If it is empty,
	// Client computes it.
	IdempotencyKey string `json:"-"`
}

// CertBody is the body of a request for an SVID.
type CertBody struct {
	ID  spiffe.ID `json:"id"`
	CSR string    `json:"csr"` // PEM, PKCS #10 (RFC 2986), signed by the SVID's key
}

// SSHBody is the body of a request for an SSH user certificate.
type SSHBody struct {
	ID        spiffe.ID `json:"id"`
	PublicKey string    `json:"publicKey"` // in the form of authorized_keys, without options and comment
}

// ValueRotation is the name of the value that contains the number of a secret's last rotation, in
// decimal. If an answer does not contain this value, the secret has never been rotated.
const ValueRotation = "rotation"

// Answer is a provider's answer to a granted request for a need. Expires is in Unix seconds; zero
// means that the values do not expire.
type Answer struct {
	Values  map[string]string `json:"values"`
	Expires int64             `json:"expires,omitempty"`
}

// Artifact contains the documents of a node. It is the answer of a provider to GET
// /config/artifact/<node> and to GET /config/watch.
type Artifact struct {
	Documents []SignedDocument `json:"documents"`

	// Revocations is the cluster's revocation list, if it is newer than the list that the node has.
	// If Revocations or Grants is set and Documents is empty, the node's documents did not change.
	Revocations *trust.SignedRevocations `json:"revocations,omitempty"`

	// Grants contains the access grants for the node, and the statements that end grants, if they
	// differ from those that the node received last. It may be empty, and is nil if the node has
	// the same, or has no use for grants.
	Grants *Grants `json:"grants,omitempty"`

	// NotModified is set by Client if the provider has the same documents as the node. Documents is
	// then empty.
	NotModified bool `json:"-"`

	// Has is the tag of the documents that the node has. Client sets it together with NotModified.
	Has string `json:"-"`

	// Revision is set by Client in the answer to a watch. The next watch continues from this
	// revision.
	Revision int64 `json:"-"`
}

// Grants contains access grants, and statements that end grants, in the order of their texts.
type Grants []accessgrant.Signed

// Tag returns the digest of the grants, by which a node tells a provider what it received last.
func (g Grants) Tag() string {
	b, _ := json.Marshal(g) // contains only texts
	return document.Digest(b)
}

// NoGrants is sent instead of a Tag by a node that has received no grants yet.
const NoGrants = "none"

// Unchanged reports whether the node already has the newest documents of the provider.
func (a Artifact) Unchanged() bool {
	return a.NotModified || len(a.Documents) == 0 && (a.Revocations != nil || a.Grants != nil)
}

// Tag returns the entity tag (RFC 9110, section 8.8.3) of the documents in the answer. See the
// function Tag.
func (a Artifact) Tag() string {
	var envelopes [][]byte
	for _, d := range a.Documents {
		envelopes = append(envelopes, []byte(d.Envelope))
	}
	return Tag(envelopes...)
}

// Tag returns the entity tag of the documents with the given envelopes, in any order. The tag is
// the SHA-256 of the sorted envelopes joined by newlines, in the form "sha256-…" including the
// quotes. It changes with the bodies too, because each envelope contains the digest of its body.
func Tag(envelopes ...[]byte) string {
	sorted := slices.SortedFunc(slices.Values(envelopes), bytes.Compare)
	return `"` + document.Digest(bytes.Join(sorted, []byte("\n"))) + `"`
}

// Reported is a provider's answer to the report that a host has sent with POST /config/report. It
// acknowledges the report, and tells the host which secrets an operator wants to be replaced.
type Reported struct {
	Sequence int64 `json:"sequence"` // highest sequence number among the node's reports

	// Rotate contains the rotations of secrets that an operator ordered. It maps the ID of a need
	// to the number of the rotation. The host requests the rotation if this number is the last
	// rotation plus one.
	Rotate map[string]int `json:"rotate,omitempty"`
}

// SignedDocument is the exact text of a document's envelope and body, with the signatures of the
// envelope.
type SignedDocument struct {
	Envelope  string `json:"envelope"`
	Body      string `json:"body"`
	Signature string `json:"signature"`
}

// Key returns the idempotency key of the request. The key is the SHA-256, in lower-case hex, of
// three lines: the caller, the need, and the canonical JSON of
// {"body":…,"generation":…,"rotation":…}. The field rotation is omitted if it is zero. A request
// for a new secret differs in its generation or rotation, and therefore has another key. Key
// returns an error if the body is not valid for strictjson.Decode.
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

// Asked returns the part of a request's body that comes from the manifest, as canonical JSON. It
// leaves out the fields "csr" and "publicKey", which the host has added. The result equals
// Canonical of the need's request. Asked returns an error if the body is not valid for
// strictjson.Decode.
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
	delete(fields, "publicKey")
	return encode(fields)
}

// Canonical returns a JSON value in canonical form, in which equal values have equal bytes. For the
// values that documents contain, the form is that of RFC 8785:
//
//   - Keys are sorted by their UTF-8 bytes.
//   - There is no white space.
//   - Integers have at most 64 bits.
//   - Strings contain only the escapes \" \\ \b \f \n \r \t, \u00xx for other control characters,
//     \u2028 and \u2029.
func Canonical(b []byte) ([]byte, error) {
	var raw json.RawMessage
	if err := strictjson.Decode(b, &raw); err != nil {
		return nil, err
	}
	return canonical(raw)
}

// canonical returns the canonical form of a JSON value, which must be valid for strictjson.Decode.
func canonical(b []byte) ([]byte, error) {
	v, err := parse(b)
	if err != nil {
		return nil, err
	}
	return encode(v)
}

// parse decodes a JSON value. It keeps numbers as they are written.
func parse(b []byte) (v any, err error) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	err = d.Decode(&v)
	return v, err
}

// encode writes a JSON value that parse returned, in canonical form.
func encode(v any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
