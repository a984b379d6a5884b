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
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
)

// Values of the field "schema" in identity files and identity requests.
const (
	IdentityFileSchema    = "florete.identity-file/v1"
	IdentityRequestSchema = "florete.identity-request/v1"
)

// IdentityRequestNamespace is the sshsig namespace (OpenSSH PROTOCOL.sshsig) of identity requests.
const IdentityRequestNamespace = "florete-identity-request"

// MaxIdentityFile is the maximum length of an identity file in bytes, both encrypted and decrypted.
const MaxIdentityFile = 32 << 20

// IdentityFile contains the certificates and documents of a host that cannot fetch them over the
// network. An operator creates the file and brings it to the host. On disk, it is encrypted with
// age. If Node is zero, the file is for a machine that is not a host, and contains one SVID.
type IdentityFile struct {
	Schema  string          `json:"schema"`
	Format  document.Format `json:"format"`
	Cluster string          `json:"cluster"`
	Node    spiffe.ID       `json:"node,omitzero"`
	SVIDs   []IdentitySVID  `json:"svids"` // sorted by ID

	// Roots lists the root certificates of the trust domain in PEM. It is set only if the file
	// contains no documents.
	Roots []string `json:"roots,omitempty"`

	// DeviceKey is the private device key (PEM, OpenSSH) of a host that has no SSH host key in the
	// flake. It is empty if the host generated the key itself. Admission is the operator's
	// admission of this key.
	DeviceKey string                 `json:"deviceKey,omitempty"`
	Admission *trust.SignedAdmission `json:"admission,omitempty"`

	// Artifact contains the documents of the host, and the revocation list of the cluster.
	Artifact Artifact `json:"artifact,omitzero"`
}

// MarshalJSON encodes the file. It writes an empty list of documents as [], because readers refuse
// null.
func (f IdentityFile) MarshalJSON() ([]byte, error) {
	type plain IdentityFile
	if f.Artifact.Revocations != nil && f.Artifact.Documents == nil {
		f.Artifact.Documents = []SignedDocument{}
	}
	return json.Marshal(plain(f))
}

// IdentitySVID is an SVID in an identity file, with its certificates and its key in PEM.
type IdentitySVID struct {
	ID   spiffe.ID `json:"id"`
	SVID string    `json:"svid"`          // leaf, then intermediates
	Key  string    `json:"key,omitempty"` // PKCS #8; empty if the host generated the key
}

// SignedIdentityFile is the exact text of an encoded IdentityFile with its signature, in Nix
// format.
type SignedIdentityFile struct {
	File      string `json:"file"`
	Signature string `json:"signature"`
}

// IdentityFileText returns the text that is signed for an identity file. The parameter file is the
// encoded IdentityFile.
func IdentityFileText(file string) string { return "florete-identity-file-v1\n" + file }

// Verify checks that the file is signed by the given keys and meant for the given node of the
// cluster, and returns the decoded file. On a machine that is not a host, node is the zero ID, and
// cluster may be empty.
func (s SignedIdentityFile) Verify(cluster string, node spiffe.ID, by signers.Set) (f IdentityFile, err error) {
	if err := decodeFormat("identity file", s.File, &f); err != nil {
		return f, err
	}
	if f.Schema != IdentityFileSchema {
		return f, fmt.Errorf("identity file: schema %.64q, want %q", f.Schema, IdentityFileSchema)
	}
	if f.Node.IsZero() != node.IsZero() {
		return f, errors.New("identity file: want one of a host, made with florctl identity issue --host, or with --out one of a single identity, made with --id")
	}
	if cluster != "" && f.Cluster != cluster || f.Node != node {
		return f, fmt.Errorf("identity file: for %s of cluster %.64q, this host is %s of %q", f.Node, f.Cluster, node, cluster)
	}
	if err := by.Verify("identity file", IdentityFileText(s.File), s.Signature); err != nil {
		return f, fmt.Errorf("%w: want one that florctl identity issue signed with a key that this host pins", err)
	}
	return f, nil
}

// decodeFormat decodes text strictly. It returns a *document.NewerFormatError if the text has a
// format that only a newer release understands. The argument what names the text in errors.
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

// SVID returns the SVID of an identity, or nil if the file contains none for it.
func (f IdentityFile) SVID(id spiffe.ID) *IdentitySVID {
	i := slices.IndexFunc(f.SVIDs, func(s IdentitySVID) bool { return s.ID == id })
	if i < 0 {
		return nil
	}
	return &f.SVIDs[i]
}

// IdentityRequest is a host's request for an identity file. It contains certificate signing
// requests for keys that the host has generated.
type IdentityRequest struct {
	Schema  string          `json:"schema"`
	Format  document.Format `json:"format"`
	Cluster string          `json:"cluster"`
	Node    spiffe.ID       `json:"node"`
	Device  string          `json:"device"` // SSH host key or device key, authorized_keys form, without comment
	SVIDs   []CertBody      `json:"svids"`  // sorted by ID
}

// SignedIdentityRequest is the exact text of an encoded IdentityRequest, with a signature by the
// SSH key that the request contains.
type SignedIdentityRequest struct {
	Request   string `json:"request"`
	Signature string `json:"signature"` // armored sshsig
}

// SignIdentityRequest signs an encoded IdentityRequest with an SSH key of the host.
func SignIdentityRequest(request []byte, key ssh.Signer) (SignedIdentityRequest, error) {
	sig, err := sshsig.Sign(bytes.NewReader(request), key, sshsig.HashSHA512, IdentityRequestNamespace)
	if err != nil {
		return SignedIdentityRequest{}, fmt.Errorf("identity request: %w", err)
	}
	return SignedIdentityRequest{string(request), string(sshsig.Armor(sig))}, nil
}

// Verify decodes the request, checks that it is signed by the SSH key that it contains, and returns
// that key. The caller must decide whether to trust the key.
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
		return r, nil, fmt.Errorf("identity request: %w: it was changed since flor identity create", err)
	}
	return r, key, nil
}
