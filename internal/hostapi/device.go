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

// DeviceStatement is the text that a node signs with its SSH host key on each connection to a
// provider. The signature is called the device proof. A thief of the node's SVID cannot use it
// without this key, because providers refuse the SVID without a device proof.
//
// The statement needs no nonce, because the channel binding (RFC 8446, section 7.5) contains random
// values from both sides and is unique to the connection. The statement contains Node, because the
// channel binding does not depend on the client's certificate. It contains Provider, so that one
// provider cannot pass it on to another.
type DeviceStatement struct {
	Node     spiffe.ID
	Provider spiffe.ID
	Binding  []byte // from ChannelBinding
}

// Bytes returns the text to sign. Its lines are the version, the trust domain, the node, the
// provider, and the channel binding in lower-case hex.
func (s DeviceStatement) Bytes() []byte {
	return fmt.Appendf(nil, "florete-device-v1\n%s\n%s\n%s\n%s\n",
		s.Node.TrustDomain(), s.Node, s.Provider, hex.EncodeToString(s.Binding))
}

// Sign signs the statement with the node's SSH host key, and returns the device proof as an armored
// sshsig.
func (s DeviceStatement) Sign(hostKey ssh.Signer) (string, error) {
	sig, err := sshsig.Sign(bytes.NewReader(s.Bytes()), hostKey, sshsig.HashSHA512, DeviceNamespace)
	if err != nil {
		return "", fmt.Errorf("device proof: %w", err)
	}
	return string(sshsig.Armor(sig)), nil
}

// DeviceProofKey returns the public key that a device proof claims as its signer. It does not
// verify the signature.
func DeviceProofKey(proof string) (ssh.PublicKey, error) {
	sig, err := sshsig.Unarmor([]byte(proof))
	if err != nil {
		return nil, fmt.Errorf("device proof: %w", err)
	}
	return sig.PublicKey, checkHostKey(sig.PublicKey)
}

// Verify returns nil if the device proof is a signature of the statement by the given SSH host key.
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
