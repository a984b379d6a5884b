package trust

import (
	"bytes"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
)

// RevocationsSchema is the schema that Revocations describes.
const RevocationsSchema = "florete.revocations/v1"

// MaxRevocations is the longest list, in bytes.
const MaxRevocations = 128 << 10

// Backdated is how far before it was issued a certificate begins, for hosts whose clock is
// behind.
const Backdated = 5 * time.Minute

// MaxLifetime is the longest that an SVID can have.
const MaxLifetime = 90 * 24 * time.Hour

// Revocations is the cluster's revocation list: which identities, certificates and SSH host
// keys are good no more, whatever documents say. Its number only grows. nil is no list, and
// revokes nothing.
type Revocations struct {
	Schema  string          `json:"schema"`
	Format  document.Format `json:"format"`
	Cluster string          `json:"cluster"`
	Number  int64           `json:"number"`
	Signed  unixtime.Time   `json:"signed"`

	// NextUpdate is when a newer list is due. This one stays in force, and hosts raise an alarm.
	NextUpdate unixtime.Time `json:"nextUpdate"`

	Entries      []Revocation         `json:"entries"`      // sorted by ID
	Certificates []RevokedCertificate `json:"certificates"` // sorted by serial number

	// Reinstated lists the entries of earlier lists that an operator cleared. It is absent where there is none.
	Reinstated []Reinstated `json:"reinstated,omitempty"`

	// Former is the digest of the list that this one continues, whose number is one less. It is empty for the first
	// list, and for a list that continues two.
	Former string `json:"former,omitempty"`

	file   []byte
	signed SignedRevocations
	ids    map[spiffe.ID]*Revocation
	keys   map[string]bool
	certs  map[string]bool
}

// Revocation is an identity that is revoked. Of a node, so is all that it was given: the
// identities scoped to it, and each certificate that it requested.
type Revocation struct {
	ID spiffe.ID `json:"id,omitzero"` // zero where only keys are revoked

	// ValidAfter is since when certificates are good that were issued later; zero where none is.
	ValidAfter unixtime.Time `json:"validAfter"`

	// EnrolKeyFingerprints are of SSH host keys that prove no node any more: "SHA256:…".
	EnrolKeyFingerprints []string `json:"enrolKeyFingerprints,omitempty"`

	// Suspended is that nothing of it is good, whatever ValidAfter says, until an operator
	// resumes it: then all that ValidAfter allows is good again.
	Suspended bool `json:"suspended,omitempty"`
}

// RevokedCertificate is one certificate, an SVID or of an issuing CA.
type RevokedCertificate struct {
	Serial string        `json:"serial"` // lower-case hex
	Until  unixtime.Time `json:"until"`  // when the certificate has ended at the latest
}

// SignedRevocations is a list byte for byte, with its signature (Nix format).
type SignedRevocations struct {
	List      string `json:"list"`
	Signature string `json:"signature"`
}

// RevokedError is the error of what a list revokes.
type RevokedError struct {
	What       string        // "node/elm", or a certificate, or a key
	Number     int64         // of the list
	ValidAfter unixtime.Time // what is issued later is good; zero for nothing is
	Suspended  bool          // until it is resumed
}

func (e *RevokedError) Error() string {
	if e.Suspended {
		return fmt.Sprintf("%s is suspended, by revocation list %d: florctl resume", e.What, e.Number)
	}
	if e.ValidAfter.IsZero() {
		return fmt.Sprintf("%s is revoked, by revocation list %d: florctl reinstate, if that is wrong", e.What, e.Number)
	}
	return fmt.Sprintf("%s is revoked, by revocation list %d, where it was issued before %s: request another", e.What, e.Number, e.ValidAfter.UTC().Format(time.RFC3339))
}

// RevocationsText is what a list's signature covers.
func RevocationsText(list string) string { return "florete-revocations-v1\n" + list }

// Open decodes a list. The signature is checked by Verify.
func (s SignedRevocations) Open() (*Revocations, error) {
	b := []byte(s.List)
	if len(b) > MaxRevocations {
		return nil, fmt.Errorf("revocation list of %d bytes, want at most %d", len(b), MaxRevocations)
	}
	var head struct {
		Format document.Format `json:"format"`
		Number int64           `json:"number"`
	}
	if err := json.Unmarshal(b, &head); err == nil && head.Format.Newer(document.NewestFormat) {
		return nil, &document.NewerFormatError{What: fmt.Sprintf("revocation list %d", head.Number), Format: head.Format}
	}
	r := &Revocations{signed: s, ids: map[spiffe.ID]*Revocation{}, keys: map[string]bool{}, certs: map[string]bool{}}
	if err := strictjson.Decode(b, r); err != nil {
		return nil, fmt.Errorf("revocation list: %w", err)
	}
	if r.Schema != RevocationsSchema || r.Number < 1 {
		return nil, fmt.Errorf("revocation list: schema %q, number %d: want %q and a number above zero", r.Schema, r.Number, RevocationsSchema)
	}
	for i, e := range r.Entries {
		if _, twice := r.ids[e.ID]; twice && !e.ID.IsZero() {
			return nil, fmt.Errorf("revocation list %d: %s: given twice", r.Number, e.ID)
		}
		if !e.ID.IsZero() {
			r.ids[e.ID] = &r.Entries[i]
		}
		for _, k := range e.EnrolKeyFingerprints {
			r.keys[k] = true
		}
	}
	for _, c := range r.Certificates {
		r.certs[c.Serial] = true
	}
	return r, nil
}

// Verify checks the signature of a cluster's list against pinned keys ("name:base64").
func (s SignedRevocations) Verify(r *Revocations, cluster string, keys []string) error {
	if r.Cluster != cluster {
		return fmt.Errorf("revocation list %d is of cluster %.64q, want %q", r.Number, r.Cluster, cluster)
	}
	return document.VerifySignature(fmt.Sprintf("revocation list %d", r.Number), RevocationsText(s.List), s.Signature, keys)
}

// ReadRevocations reads the file of a list, which has its signature too; nil where there is
// none. It returns old, and decodes nothing, where the file has the same bytes.
func ReadRevocations(path string, old *Revocations) (*Revocations, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && old != nil && bytes.Equal(b, old.file) {
		return old, nil
	}
	var s SignedRevocations
	if err == nil {
		err = strictjson.Decode(b, &s)
	}
	var r *Revocations
	if err == nil {
		r, err = s.Open()
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	r.file = b
	return r, nil
}

// Newer is the list with the higher number: none ever goes back.
func (r *Revocations) Newer(o *Revocations) bool { return r.InForce() > o.InForce() }

// InForce is the number of the list, zero for none.
func (r *Revocations) InForce() int64 {
	if r == nil {
		return 0
	}
	return r.Number
}

// Overdue is for how long a newer list has been due, zero where none is.
func (r *ReportedRevocations) Overdue(now time.Time) time.Duration {
	if r == nil || r.NextUpdate.IsZero() || !now.After(r.NextUpdate.Time) {
		return 0
	}
	return now.Sub(r.NextUpdate.Time).Round(time.Second)
}

// AsSigned is the list as it was read.
func (r *Revocations) AsSigned() SignedRevocations { return r.signed }

// CheckKey refuses an SSH host key that is revoked, by its fingerprint ("SHA256:…").
func (r *Revocations) CheckKey(fingerprint string) error {
	if r == nil || !r.keys[fingerprint] {
		return nil
	}
	return &RevokedError{What: "SSH host key " + fingerprint, Number: r.Number}
}

// CheckID refuses an identity of which nothing is good.
func (r *Revocations) CheckID(id spiffe.ID) error {
	if r == nil {
		return nil
	}
	if e := r.ids[id]; e != nil && (e.Suspended || e.ValidAfter.IsZero()) {
		return &RevokedError{What: id.Short(), Number: r.Number, Suspended: e.Suspended}
	}
	return nil
}

// CheckChain refuses the chain of an SVID, leaf first, of an identity that was verified.
func (r *Revocations) CheckChain(chain []*x509.Certificate, id spiffe.ID) error {
	if r == nil {
		return nil
	}
	for _, c := range chain[1:] {
		if err := r.checkSerial(SerialNumber(c), id); err != nil {
			return err
		}
	}
	return r.CheckLeaf(IssuedOf(chain[0], id))
}

// CheckIssued refuses what proves an identity, and was issued at a time to a node; an empty
// one is not known.
func (r *Revocations) CheckIssued(id spiffe.ID, node string, issued time.Time) error {
	if r == nil {
		return nil
	}
	for _, of := range covering(id, node) {
		e := r.ids[of]
		if e != nil && (e.Suspended || e.ValidAfter.IsZero() || !issued.After(e.ValidAfter.Time)) {
			what := of.Short()
			if of != id {
				what = fmt.Sprintf("%s, which was given %s,", what, id.Short())
			}
			return &RevokedError{What: what, Number: r.Number, ValidAfter: e.ValidAfter, Suspended: e.Suspended}
		}
	}
	return nil
}

// covering are the identities whose revocation revokes what was issued to a node.
func covering(id spiffe.ID, node string) []spiffe.ID {
	all := []spiffe.ID{id}
	for _, node := range []string{id.Node(), node} {
		if of, err := spiffe.NewID(id.TrustDomain(), spiffe.KindNode, "", node); err == nil && !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return all
}

// SerialNumber is a certificate's as lists and audit rows have it.
func SerialNumber(c *x509.Certificate) string { return fmt.Sprintf("%x", c.SerialNumber) }

// givenTo starts the organizational unit of an SVID's subject, which has the node that it was
// issued to.
const givenTo = "node/"

// givenToDevice starts that which has the fingerprint of the node's device key, where no SSH
// host key is declared: only the device that was admitted can use it at providers.
const givenToDevice = "device/"

// Subject are the organizational units by which an SVID names the node that it is issued to,
// and the fingerprint of its device key; device is empty where the flake declares the key.
func Subject(node, device string) (units []string) {
	if node != "" {
		units = append(units, givenTo+node)
	}
	if device != "" {
		units = append(units, givenToDevice+device)
	}
	return units
}

// GivenTo is the node that an SVID was issued to, empty where it does not name one.
func GivenTo(leaf *x509.Certificate) string { return unit(leaf, givenTo) }

// GivenToDevice is the fingerprint of the device key that an SVID was issued to, empty where
// it does not name one.
func GivenToDevice(leaf *x509.Certificate) string { return unit(leaf, givenToDevice) }

func unit(leaf *x509.Certificate, prefix string) string {
	for _, unit := range leaf.Subject.OrganizationalUnit {
		if of, ok := strings.CutPrefix(unit, prefix); ok {
			return of
		}
	}
	return ""
}

// ReportedRevocations is the revocation list in force.
type ReportedRevocations struct {
	Number     int64         `json:"number"`
	NextUpdate unixtime.Time `json:"nextUpdate"`
}

// Reported is the list as hosts report it, nil for none.
func (r *Revocations) Reported() *ReportedRevocations {
	if r == nil {
		return nil
	}
	return &ReportedRevocations{r.Number, r.NextUpdate}
}
