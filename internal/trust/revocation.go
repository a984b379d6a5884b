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
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
)

// RevocationsSchema is the value of the field "schema" in revocation lists.
const RevocationsSchema = "florete.revocations/v1"

// MaxRevocations is the maximum length of a revocation list in bytes.
const MaxRevocations = 128 << 10

// Backdated is the time by which a certificate becomes valid before it is issued, so that hosts
// whose clocks are slow accept a new certificate.
const Backdated = 5 * time.Minute

// MaxLifetime is the maximum lifetime of an SVID.
const MaxLifetime = 90 * 24 * time.Hour

// Revocations is the revocation list of a cluster. It contains the identities, certificates and SSH
// host keys that hosts and providers no longer accept, even if documents still name them. Each list
// has a higher number than its predecessor. A nil list revokes nothing.
type Revocations struct {
	Schema  string          `json:"schema"`
	Format  document.Format `json:"format"`
	Cluster string          `json:"cluster"`
	Number  int64           `json:"number"`
	Signed  unixtime.Time   `json:"signed"`

	// NextUpdate is the time at which a newer list is due. After this time, the list stays in
	// force, and hosts raise an alarm.
	NextUpdate unixtime.Time `json:"nextUpdate"`

	Entries      []Revocation         `json:"entries"`      // sorted by ID
	Certificates []RevokedCertificate `json:"certificates"` // sorted by serial number

	// Reinstated lists items of earlier lists that an operator removed from the list.
	Reinstated []Reinstated `json:"reinstated,omitempty"`

	// Documents names the newest published version of the cluster's documents, so that hosts notice
	// when a provider withholds it. It is nil if the list names no version. Lists of format 1.0
	// name none.
	Documents *NamedDocuments `json:"documents,omitempty"`

	// Former is the digest of the preceding list, whose number is one lower. It is empty in the
	// first list, and in a list that continues two other lists.
	Former string `json:"former,omitempty"`

	file   []byte
	signed SignedRevocations
	ids    map[spiffe.ID]*Revocation
	keys   map[string]bool
	certs  map[string]bool
}

// Revocation revokes or suspends one identity. If the identity is a node, this includes the
// identities on the node, and all certificates that the node has requested.
type Revocation struct {
	ID spiffe.ID `json:"id,omitzero"` // zero if only keys are revoked

	// ValidAfter is the time after which a certificate must be issued to be accepted. If it is
	// zero, no certificate of the identity is accepted.
	ValidAfter unixtime.Time `json:"validAfter"`

	// EnrolKeyFingerprints lists the fingerprints ("SHA256:…") of SSH host keys with which the node
	// can no longer prove its identity.
	EnrolKeyFingerprints []string `json:"enrolKeyFingerprints,omitempty"`

	// Suspended is true if the identity is refused until an operator ends the suspension. Until
	// then, ValidAfter is ignored.
	Suspended bool `json:"suspended,omitempty"`
}

// RevokedCertificate revokes one certificate, of an SVID or of an issuing CA.
type RevokedCertificate struct {
	Serial string        `json:"serial"` // lower-case hex
	Until  unixtime.Time `json:"until"`  // latest time at which the certificate expires
}

// SignedRevocations is the exact text of a revocation list with its signatures, in Nix format.
type SignedRevocations struct {
	List      string `json:"list"`
	Signature string `json:"signature"`
}

// RevokedError means that a revocation list revokes an identity, a certificate or a key.
type RevokedError struct {
	What       string        // revoked identity, such as "node/elm", or revoked certificate or key
	Number     int64         // number of the revocation list
	ValidAfter unixtime.Time // certificates issued after this time are accepted; zero if none are
	Suspended  bool          // true if the item is refused only until an operator ends the suspension
}

func (e *RevokedError) Error() string {
	if e.Suspended {
		return fmt.Sprintf("%s is suspended, by revocation list %d: florctl unsuspend", e.What, e.Number)
	}
	if e.ValidAfter.IsZero() {
		return fmt.Sprintf("%s is revoked, by revocation list %d: florctl reinstate, if that is wrong", e.What, e.Number)
	}
	return fmt.Sprintf("%s is revoked, by revocation list %d, where it was issued before %s: request another", e.What, e.Number, e.ValidAfter.UTC().Format(time.RFC3339))
}

// RevocationsText returns the text that is signed for a revocation list. The parameter list is the
// encoded list.
func RevocationsText(list string) string { return "florete-revocations-v1\n" + list }

// Open decodes the revocation list. It does not verify the signatures, which Verify does.
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

// Verify returns nil if the revocation list is for the given cluster and signed by enough of the
// pinned keys. The caller passes the decoded list that Open has returned.
func (s SignedRevocations) Verify(r *Revocations, cluster string, by signers.Set) error {
	if r.Cluster != cluster {
		return fmt.Errorf("revocation list %d is of cluster %.64q, want %q", r.Number, r.Cluster, cluster)
	}
	return by.Verify(fmt.Sprintf("revocation list %d", r.Number), RevocationsText(s.List), s.Signature)
}

// ReadRevocations reads a signed revocation list from a file, without verifying the signatures. If
// the file does not exist, it returns nil without an error. If the file still contains the list
// old, it returns old, which avoids the cost of decoding.
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

// Newer reports whether the number of this list is higher than that of the other one. Either may be
// nil.
func (r *Revocations) Newer(o *Revocations) bool { return r.InForce() > o.InForce() }

// InForce returns the number of the revocation list, or zero for a nil list.
func (r *Revocations) InForce() int64 {
	if r == nil {
		return 0
	}
	return r.Number
}

// Overdue returns for how long a newer revocation list has been overdue, or zero if none is due.
func (r *ReportedRevocations) Overdue(now time.Time) time.Duration {
	if r == nil || r.NextUpdate.IsZero() || !now.After(r.NextUpdate.Time) {
		return 0
	}
	return now.Sub(r.NextUpdate.Time).Round(time.Second)
}

// AsSigned returns the exact text of the revocation list, with its signature.
func (r *Revocations) AsSigned() SignedRevocations { return r.signed }

// CheckKey returns a *RevokedError if the list revokes the SSH host key with the given fingerprint,
// such as "SHA256:…".
func (r *Revocations) CheckKey(fingerprint string) error {
	if r == nil || !r.keys[fingerprint] {
		return nil
	}
	return &RevokedError{What: "SSH host key " + fingerprint, Number: r.Number}
}

// CheckID returns a *RevokedError if the list revokes or suspends the identity as a whole, so that
// none of its certificates is accepted.
func (r *Revocations) CheckID(id spiffe.ID) error {
	if r == nil {
		return nil
	}
	if e := r.ids[id]; e != nil && (e.Suspended || e.ValidAfter.IsZero()) {
		return &RevokedError{What: id.Short(), Number: r.Number, Suspended: e.Suspended}
	}
	return nil
}

// CheckChain returns a *RevokedError if the list revokes a certificate of the chain. The chain
// begins with the leaf, and id is the verified SPIFFE ID of the leaf.
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

// CheckIssued returns a *RevokedError if the list revokes a credential of an identity, such as a
// JWT-SVID, that was issued at the given time. The node is the one that requested the credential,
// or empty if that is not known.
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

// covering returns the identities whose revocation also revokes a credential: the identity id of
// the credential, the node to which this identity is scoped, and the node to which the credential
// was issued.
func covering(id spiffe.ID, node string) []spiffe.ID {
	all := []spiffe.ID{id}
	for _, node := range []string{id.Node(), node} {
		if of, err := spiffe.NewID(id.TrustDomain(), spiffe.KindNode, "", node); err == nil && !slices.Contains(all, of) {
			all = append(all, of)
		}
	}
	return all
}

// SerialNumber returns the serial number of a certificate in lower-case hex, as revocation lists
// and audit rows contain it.
func SerialNumber(c *x509.Certificate) string { return fmt.Sprintf("%x", c.SerialNumber) }

// givenTo is the prefix of an organizational unit in the subject of an SVID. This unit names the
// node to which the SVID was issued.
const givenTo = "node/"

// givenToDevice is the prefix of an organizational unit in the subject of an SVID. This unit
// contains the fingerprint of the node's device key, if the flake declares no SSH host key for the
// node. Providers accept such an SVID only from the admitted device.
const givenToDevice = "device/"

// Subject returns the organizational units for the subject of a new SVID. They contain the name of
// the node to which the SVID is issued, and the fingerprint of the node's device key. The
// fingerprint is empty if the flake declares an SSH host key for the node.
func Subject(node, device string) (units []string) {
	if node != "" {
		units = append(units, givenTo+node)
	}
	if device != "" {
		units = append(units, givenToDevice+device)
	}
	return units
}

// GivenTo returns the name of the node to which an SVID was issued, or "" if the SVID does not name
// one.
func GivenTo(leaf *x509.Certificate) string { return unit(leaf, givenTo) }

// GivenToDevice returns the fingerprint of the device key to which an SVID was issued, or "" if the
// SVID does not name one.
func GivenToDevice(leaf *x509.Certificate) string { return unit(leaf, givenToDevice) }

func unit(leaf *x509.Certificate, prefix string) string {
	for _, unit := range leaf.Subject.OrganizationalUnit {
		if of, ok := strings.CutPrefix(unit, prefix); ok {
			return of
		}
	}
	return ""
}

// ReportedRevocations is the part of a host's report that tells operators which revocation list is
// in force on the host.
type ReportedRevocations struct {
	Number     int64         `json:"number"`
	NextUpdate unixtime.Time `json:"nextUpdate"`
	Signed     unixtime.Time `json:"signed,omitzero"` // zero in reports of earlier releases
}

// Reported returns the description of the revocation list for a host's report. It returns nil for a
// nil list.
func (r *Revocations) Reported() *ReportedRevocations {
	if r == nil {
		return nil
	}
	return &ReportedRevocations{r.Number, r.NextUpdate, r.Signed}
}
