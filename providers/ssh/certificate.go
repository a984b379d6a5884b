package ssh

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/pubkey"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/trust"
)

// requested returns the public key in a request for a certificate.
func requested(r hostapi.Request) (ssh.PublicKey, error) {
	var body hostapi.SSHBody
	err := strictjson.Decode(r.Body, &body)
	if err != nil {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "need %q: body: %v", r.Need, err)
	}
	key, err := parseKey(body.PublicKey)
	if err != nil {
		return nil, hostapi.Errorf(hostapi.CodeMalformed, "need %q: publicKey: %v, want an Ed25519 key, or an ECDSA key of P-256 or P-384", r.Need, err)
	}
	return key, nil
}

// parseKey parses a public key in the form of authorized_keys, without options and comment.
func parseKey(text string) (ssh.PublicKey, error) {
	key, _, _, _, err := ssh.ParseAuthorizedKey([]byte(text))
	if err != nil {
		return nil, err
	}
	if strings.TrimSuffix(string(ssh.MarshalAuthorizedKey(key)), "\n") != text {
		return nil, errors.New("more than the type and the key")
	}
	switch key.Type() {
	case ssh.KeyAlgoED25519, ssh.KeyAlgoECDSA256, ssh.KeyAlgoECDSA384:
		return key, pubkey.Check(key.(ssh.CryptoPublicKey).CryptoPublicKey())
	}
	return nil, fmt.Errorf("key of type %s", key.Type())
}

// Certify returns a certificate for the public key of a user, signed by a key of the certificate
// authority. The argument node is the name of the node that requested the certificate.
func Certify(authority ssh.Signer, key ssh.PublicKey, id spiffe.ID, node string, now, until time.Time) (*ssh.Certificate, error) {
	var serial [8]byte
	if _, err := rand.Read(serial[:]); err != nil {
		return nil, err
	}
	c := &ssh.Certificate{
		Key: key, Serial: binary.BigEndian.Uint64(serial[:]), CertType: ssh.UserCert,
		KeyId: id.String(), ValidPrincipals: []string{id.String()},
		ValidAfter: uint64(now.Add(-trust.Backdated).Unix()), ValidBefore: uint64(until.Unix()),
		Permissions: ssh.Permissions{Extensions: map[string]string{
			document.SSHExtensionNode: node,
			// The defaults of ssh-keygen. A server may permit less.
			"permit-X11-forwarding": "", "permit-agent-forwarding": "", "permit-port-forwarding": "", "permit-pty": "", "permit-user-rc": "",
		}},
	}
	return c, c.SignCert(rand.Reader, authority)
}
