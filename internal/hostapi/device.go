package hostapi

import (
	"bytes"
	"encoding/hex"
	"fmt"

	"github.com/hiddeco/sshsig"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/spiffe"
)

// DeviceNamespace is the sshsig namespace (OpenSSH PROTOCOL.sshsig) of device proofs.
const DeviceNamespace = "florete-device"

// DeviceStatement is signed by a node with its SSH host key on each connection on which it makes
// requests. The SVID alone, which the forwarder's account can read, therefore obtains nothing.
//
// The statement has no nonce. The channel binding depends on random values of both sides (RFC 8446,
// section 7.5), so it is unique to the connection. Node is included because the binding does not
// depend on the client's certificate, and Provider so that no provider can forward the statement to
// another.
type DeviceStatement struct {
	Node     spiffe.ID
	Provider spiffe.ID
	Binding  []byte // from ChannelBinding
}

// Bytes returns the text to sign, in lines: the version, trust domain, node, provider, and the
// channel binding in lower-case hex.
func (s DeviceStatement) Bytes() []byte {
	return fmt.Appendf(nil, "florete-device-v1\n%s\n%s\n%s\n%s\n",
		s.Node.TrustDomain(), s.Node, s.Provider, hex.EncodeToString(s.Binding))
}

// Sign returns the proof, an armored sshsig made with the node's SSH host key.
func (s DeviceStatement) Sign(hostKey ssh.Signer) (string, error) {
	sig, err := sshsig.Sign(bytes.NewReader(s.Bytes()), hostKey, sshsig.HashSHA512, DeviceNamespace)
	if err != nil {
		return "", fmt.Errorf("device proof: %w", err)
	}
	return string(sshsig.Armor(sig)), nil
}

// DeviceProofKey returns the key by which a proof claims to be signed. It does not verify the
// signature.
func DeviceProofKey(proof string) (ssh.PublicKey, error) {
	sig, err := sshsig.Unarmor([]byte(proof))
	if err != nil {
		return nil, fmt.Errorf("device proof: %w", err)
	}
	return sig.PublicKey, checkHostKey(sig.PublicKey)
}

// Verify checks the signature of a proof with a host key.
func (s DeviceStatement) Verify(proof string, hostKey ssh.PublicKey) error {
	sig, err := sshsig.Unarmor([]byte(proof))
	if err != nil {
		return fmt.Errorf("device proof: %w", err)
	}
	if err := sshsig.Verify(bytes.NewReader(s.Bytes()), sig, hostKey, sshsig.HashSHA512, DeviceNamespace); err != nil {
		return fmt.Errorf("device proof: %w", err)
	}
	return nil
}
