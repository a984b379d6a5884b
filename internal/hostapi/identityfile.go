package hostapi

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
)

// Schemas of identity files and of requests for them.
const (
	IdentityFileSchema    = "florete.identity-file/v1"
	IdentityRequestSchema = "florete.identity-request/v1"
)

// IdentityRequestNamespace is the sshsig namespace (OpenSSH PROTOCOL.sshsig) of requests.
const IdentityRequestNamespace = "florete-identity-request"

// MaxIdentityFile is the longest identity file, in bytes, sealed or not.
const MaxIdentityFile = 32 << 20

// IdentityFile is what an operator gives a host by hand: what it would have fetched; or a
// machine that is no host, where Node is zero: one SVID. It is sealed with age where it is a
// file.
type IdentityFile struct {
	Schema  string          `json:"schema"`
	Format  document.Format `json:"format"`
	Cluster string          `json:"cluster"`
	Node    spiffe.ID       `json:"node,omitzero"`
	SVIDs   []IdentitySVID  `json:"svids"` // sorted by ID

	// Roots are those of the trust domain, in PEM, where there are no documents to have them.
	Roots []string `json:"roots,omitempty"`

	// DeviceKey is the key that proves a host without an SSH host key in the flake (PEM,
	// OpenSSH), unless it made one itself, and Admission the operator's word for that.
	DeviceKey string                 `json:"deviceKey,omitempty"`
	Admission *trust.SignedAdmission `json:"admission,omitempty"`

	// Artifact has the host's documents, and the revocation list.
	Artifact Artifact `json:"artifact,omitzero"`
}

// MarshalJSON writes the documents of a machine that has none beside a revocation list as an empty
// list: readers refuse null.
func (f IdentityFile) MarshalJSON() ([]byte, error) {
	type plain IdentityFile
	if f.Artifact.Revocations != nil && f.Artifact.Documents == nil {
		f.Artifact.Documents = []SignedDocument{}
	}
	return json.Marshal(plain(f))
}

// IdentitySVID is an SVID that a host is given, in PEM.
type IdentitySVID struct {
	ID   spiffe.ID `json:"id"`
	SVID string    `json:"svid"`          // leaf, then intermediates
	Key  string    `json:"key,omitempty"` // PKCS #8; none where the host made it
}

// SignedIdentityFile is an IdentityFile byte for byte, with its signature (Nix format).
type SignedIdentityFile struct {
	File      string `json:"file"`
	Signature string `json:"signature"`
}

// IdentityFileText is what the signature of an identity file covers.
func IdentityFileText(file string) string { return "florete-identity-file-v1\n" + file }

// Verify returns what one of a cluster's keys signed for a node; zero for a machine that is no
// host, and knows only the key.
func (s SignedIdentityFile) Verify(cluster string, node spiffe.ID, keys []string) (f IdentityFile, err error) {
	if err := decodeFormat("identity file", s.File, &f); err != nil {
		return f, err
	}
	if f.Schema != IdentityFileSchema {
		return f, fmt.Errorf("identity file: schema %.64q, want %q", f.Schema, IdentityFileSchema)
	}
	if f.Node.IsZero() != node.IsZero() {
		return f, errors.New("identity file: want one of a host, made with florctl id issue --host, or with --out one of a single identity, made with --id")
	}
	if cluster != "" && f.Cluster != cluster || f.Node != node {
		return f, fmt.Errorf("identity file: for %s of cluster %.64q, this host is %s of %q", f.Node, f.Cluster, node, cluster)
	}
	if err := document.VerifySignature("identity file", IdentityFileText(s.File), s.Signature, keys); err != nil {
		return f, fmt.Errorf("%w: want one that florctl id issue signed with a key that this host pins", err)
	}
	return f, nil
}

// decodeFormat decodes a text strictly, unless it is of a newer format.
func decodeFormat(what, text string, v any) error {
	var head struct {
		Format document.Format `json:"format"`
	}
	if err := json.Unmarshal([]byte(text), &head); err == nil && head.Format.Newer(document.NewestFormat) {
		return &document.NewerFormatError{What: what, Format: head.Format}
	}
	if err := strictjson.Decode([]byte(text), v); err != nil {
		return fmt.Errorf("%s: %w", what, err)
	}
	return nil
}

// SVID is that of an identity, nil where the file has none.
func (f IdentityFile) SVID(id spiffe.ID) *IdentitySVID {
	i := slices.IndexFunc(f.SVIDs, func(s IdentitySVID) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &f.SVIDs[i]
}

// IdentityRequest is what a host requests an identity file with whose keys it made itself.
type IdentityRequest struct {
	Schema  string          `json:"schema"`
	Format  document.Format `json:"format"`
	Cluster string          `json:"cluster"`
	Node    spiffe.ID       `json:"node"`
	Device  string          `json:"device"` // SSH host key or device key, authorized_keys form, without comment
	SVIDs   []CertBody      `json:"svids"`  // sorted by ID
}

// SignedIdentityRequest is an IdentityRequest byte for byte, signed by the key that it names.
type SignedIdentityRequest struct {
	Request   string `json:"request"`
	Signature string `json:"signature"` // armored sshsig
}

// SignIdentityRequest signs a request as it is encoded.
func SignIdentityRequest(request []byte, key ssh.Signer) (SignedIdentityRequest, error) {
	sig, err := sshsig.Sign(bytes.NewReader(request), key, sshsig.HashSHA512, IdentityRequestNamespace)
	if err != nil {
		return SignedIdentityRequest{}, fmt.Errorf("identity request: %w", err)
	}
	return SignedIdentityRequest{string(request), string(sshsig.Armor(sig))}, nil
}

// Verify returns what the key that a request names signed, and that key. Whose it is, is for
// the caller to judge.
func (s SignedIdentityRequest) Verify() (r IdentityRequest, key ssh.PublicKey, err error) {
	if err := decodeFormat("identity request", s.Request, &r); err != nil {
		return r, nil, err
	}
	if r.Schema != IdentityRequestSchema {
		return r, nil, fmt.Errorf("identity request: schema %.64q, want %q", r.Schema, IdentityRequestSchema)
	}
	if key, err = ParseHostKey(r.Device); err != nil {
		return r, nil, fmt.Errorf("identity request: device: %w", err)
	}
	sig, err := sshsig.Unarmor([]byte(s.Signature))
	if err == nil {
		err = sshsig.Verify(bytes.NewReader([]byte(s.Request)), sig, key, sshsig.HashSHA512, IdentityRequestNamespace)
	}
	if err != nil {
		return r, nil, fmt.Errorf("identity request: %w: it was changed since flor id create", err)
	}
	return r, key, nil
}
