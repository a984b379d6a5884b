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

// DeviceStatement is what a node signs with its SSH host key on each connection on which
// it requests anything: the SVID alone, which the forwarder's account can read, obtains
// nothing.
//
// It has no nonce. The binding depends on fresh random values of both sides (RFC 8446
// section 7.5), so no other connection ever has it, and the statement ends with the
// connection. Node is in it because the binding does not depend on the client's
// certificate, and Provider so that no provider can pass it on to another.
type DeviceStatement struct {
	Node     spiffe.ID
	Provider spiffe.ID
	Binding  []byte // from ChannelBinding
}

// Bytes are the signed lines: the version, trust domain, node, provider, then in
// lower-case hex the channel binding.
func (s DeviceStatement) Bytes() []byte {
	return fmt.Appendf(nil, "florete-device-v1\n%s\n%s\n%s\n%s\n",
		s.Node.TrustDomain(), s.Node, s.Provider, hex.EncodeToString(s.Binding))
}

// Sign makes the proof, an armored sshsig, with the node's SSH host key.
func (s DeviceStatement) Sign(hostKey ssh.Signer) (string, error) {
	sig, err := sshsig.Sign(bytes.NewReader(s.Bytes()), hostKey, sshsig.HashSHA512, DeviceNamespace)
	if err != nil {
		return "", fmt.Errorf("device proof: %w", err)
	}
	return string(sshsig.Armor(sig)), nil
}

// DeviceProofKey is the key by which a proof claims to be signed, which Verify then checks.
func DeviceProofKey(proof string) (ssh.PublicKey, error) {
	sig, err := sshsig.Unarmor([]byte(proof))
	if err != nil {
		return nil, fmt.Errorf("device proof: %w", err)
	}
	return sig.PublicKey, checkHostKey(sig.PublicKey)
}

// Verify checks a proof by a host key.
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
