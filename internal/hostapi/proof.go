package hostapi

import (
	"bytes"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"fmt"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/pubkey"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// ProofNamespace is the sshsig namespace (OpenSSH PROTOCOL.sshsig) of the proofs that hosts send at
// enrolment.
const ProofNamespace = "florete-enrol"

// Proof proves, when a host enrols, that it holds the SSH host key of its node. Signature is a
// signature of a Statement by this key.
type Proof struct {
	Node      spiffe.ID `json:"node"`
	Nonce     string    `json:"nonce"`
	Signature string    `json:"signature"` // armored sshsig over Statement.Bytes

	// Admission is the operator's admission of the key. It is required if the policy contains no
	// key for the node.
	Admission *trust.SignedAdmission `json:"admission,omitempty"`
}

// Nonce is a provider's answer to POST /cert/nonce, the first request of an enrolment. The host
// includes the nonce in the text that it signs, so that the signature cannot be used twice.
type Nonce struct {
	Nonce string `json:"nonce"`
}

// Statement is the text that a host signs for a Proof. It makes the proof valid only for one
// provider, one certificate signing request (CSR) and one TLS connection.
type Statement struct {
	Node     spiffe.ID
	Provider spiffe.ID
	Nonce    string
	CSR      []byte // DER
	Binding  []byte // from ChannelBinding
}

// Bytes returns the text to sign. Its lines are the version, the trust domain, the node, the
// provider, the nonce, the SHA-256 of the CSR, and the channel binding. The last two are in
// lower-case hex.
func (s Statement) Bytes() []byte {
	sum := sha256.Sum256(s.CSR)
	return fmt.Appendf(nil, "florete-enrol-v1\n%s\n%s\n%s\n%s\n%s\n%s\n",
		s.Node.TrustDomain(), s.Node, s.Provider, s.Nonce, hex.EncodeToString(sum[:]), hex.EncodeToString(s.Binding))
}

// Sign signs the statement with the node's SSH host key, and returns the Proof.
func (s Statement) Sign(hostKey ssh.Signer) (*Proof, error) {
	sig, err := sshsig.Sign(bytes.NewReader(s.Bytes()), hostKey, sshsig.HashSHA512, ProofNamespace)
	if err != nil {
		return nil, fmt.Errorf("enrolment proof: %w", err)
	}
	return &Proof{Node: s.Node, Nonce: s.Nonce, Signature: string(sshsig.Armor(sig))}, nil
}

// ParseHostKey parses an SSH host key in authorized_keys form. It returns an error for a weak key,
// because the signatures of such a key prove nothing.
func ParseHostKey(line string) (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(line))
	if err != nil {
		return nil, err
	}
	return key, checkHostKey(key)
}

func checkHostKey(key ssh.PublicKey) error {
	k, ok := key.(ssh.CryptoPublicKey)
	if !ok {
		return fmt.Errorf("key of type %s, want a plain one", key.Type())
	}
	return pubkey.CheckHost(k.CryptoPublicKey())
}

// Verify returns nil if the proof contains a signature of the statement by the given SSH host key.
func (s Statement) Verify(p *Proof, hostKey ssh.PublicKey) error {
	if err := checkHostKey(hostKey); err != nil {
		return fmt.Errorf("enrolment proof: %w", err)
	}
	sig, err := sshsig.Unarmor([]byte(p.Signature))
	if err != nil {
		return fmt.Errorf("enrolment proof: %w", err)
	}
	if err := sshsig.Verify(bytes.NewReader(s.Bytes()), sig, hostKey, sshsig.HashSHA512, ProofNamespace); err != nil {
		return fmt.Errorf("enrolment proof: %w", err)
	}
	return nil
}

// ChannelBinding returns the channel binding of a TLS connection, of type tls-exporter (RFC 9266,
// section 2). A signature that includes it is valid only on this connection.
func ChannelBinding(cs *tls.ConnectionState) ([]byte, error) {
	return cs.ExportKeyingMaterial("EXPORTER-Channel-Binding", nil, 32)
}
