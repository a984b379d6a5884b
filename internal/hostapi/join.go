package hostapi

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/hiddeco/sshsig"
	"github.com/nix-community/go-nix/pkg/narinfo/signature"
	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/pubkey"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// PathJoin is the path to which devices send their join requests, with POST. Config providers
// answer them.
const PathJoin = "/config/join"

// JoinNamespace is the sshsig namespace (OpenSSH PROTOCOL.sshsig) of join requests.
const JoinNamespace = "florete-join"

// MaxJoin is the maximum length of a join request in bytes.
const MaxJoin = 16 << 10

// JoinState is the state of a device's request to join the cluster. States are part of the wire
// format. Later releases may add states.
type JoinState string

const (
	JoinPending  JoinState = "pending"  // waiting for an operator's decision
	JoinApproved JoinState = "approved" // the answer contains the admission or grant with which the device enrols
	JoinRejected JoinState = "rejected" // rejected; a new request needs another token
	JoinRevoked  JoinState = "revoked"  // approved, and later revoked together with the device or its node
)

// Join is a device's request to be admitted as a node of the cluster. The device repeats it until
// an operator approves or rejects it. Only the first request of a device uses the join token, which
// the provider does not store.
type Join struct {
	Node   spiffe.ID       `json:"node"`
	Device string          `json:"device"` // public key in authorized_keys form
	Facts  json.RawMessage `json:"facts"`  // hostreport.Facts

	Token     string `json:"token,omitempty"`     // public key of the token, Nix format
	TokenSign string `json:"tokenSign,omitempty"` // signature of the statement by the token's key (Nix format)

	Signature string `json:"signature"` // signature of the statement by the device key (armored sshsig)
}

// Joined is a provider's answer to a device's join request.
type Joined struct {
	State   JoinState `json:"state"`
	Message string    `json:"message,omitempty"` // the event that the device waits for, or the reason of a rejection

	// Admission is the operator's admission of the device. If Grant is set instead, the device
	// signs its admission itself, with the key of the join token.
	Admission *trust.SignedAdmission `json:"admission,omitempty"`
	Grant     *trust.SignedGrant     `json:"grant,omitempty"`
}

// Statement returns the text that a joining device signs with its device key and with the key of
// its join token. The signatures are valid only for one connection, provider, node and device. The
// lines of the text are:
//
//   - the version, the trust domain, the node, and the provider
//   - the SHA-256 of the device key, of the token and of the facts, in lower-case hex
//   - the channel binding
func (j Join) Statement(provider spiffe.ID, binding []byte) []byte {
	hash := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	return fmt.Appendf(nil, "florete-join-v1\n%s\n%s\n%s\n%s\n%s\n%s\n%s\n", j.Node.TrustDomain(), j.Node, provider,
		hash([]byte(j.Device)), hash([]byte(j.Token)), hash(j.Facts), hex.EncodeToString(binding))
}

// TokenID returns the ID under which a provider stores a join token, which is the SHA-256 of the
// token's public key in hex.
func TokenID(public string) string {
	sum := sha256.Sum256([]byte(public))
	return hex.EncodeToString(sum[:])
}

// Verify checks the signatures of the request by the device key and, if the request has a token, by
// the join token. The signatures must be for the given provider and for the connection with the
// given channel binding. Verify returns the public key of the device.
func (j Join) Verify(provider spiffe.ID, binding []byte) (ssh.PublicKey, error) {
	key, err := ParseHostKey(j.Device)
	if err != nil {
		return nil, fmt.Errorf("device key: %w", err)
	}
	if strings.TrimSpace(string(ssh.MarshalAuthorizedKey(key))) != j.Device {
		return nil, fmt.Errorf("device key %.200q: want type and key, and nothing else", j.Device)
	}
	statement := j.Statement(provider, binding)
	sig, err := sshsig.Unarmor([]byte(j.Signature))
	if err == nil {
		err = sshsig.Verify(bytes.NewReader(statement), sig, key, sshsig.HashSHA512, JoinNamespace)
	}
	if err != nil {
		return nil, fmt.Errorf("signature of the device: %w", err)
	}
	if j.Token == "" {
		return key, nil
	}
	public, err := signature.ParsePublicKey(j.Token)
	if err == nil {
		err = pubkey.CheckEd25519(public.Data)
	}
	if err != nil {
		return nil, fmt.Errorf("token: %w", err)
	}
	tokenSign, err := signature.ParseSignature(j.TokenSign)
	if err != nil || !public.Verify(string(statement), tokenSign) {
		return nil, fmt.Errorf("signature of the token does not verify, for this connection")
	}
	return key, nil
}

// Join asks the provider to admit the device with the key HostKey as the client's Node. The token
// may be nil if the provider already knows the request of this device. The result contains the
// provider's decision.
func (c *Client) Join(ctx context.Context, facts hostreport.Facts, token *JoinToken) (a Joined, err error) {
	text, err := json.Marshal(facts)
	if err != nil {
		return a, Errorf(CodeMalformed, "facts: %v", err)
	}
	j := Join{Node: c.Node, Device: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(c.HostKey.PublicKey()))), Facts: text}
	s, err := c.connect(ctx, nil)
	if err != nil {
		return a, err
	}
	defer s.close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	binding, err := s.binding()
	if err != nil {
		return a, err
	}
	if err := j.sign(c.HostKey, token, s.client.Provider.ID, binding); err != nil {
		return a, unsigned("join request of "+c.Node.Short(), err)
	}
	b, err := json.Marshal(j)
	if err != nil {
		return a, Errorf(CodeMalformed, "join request of %s: %v", c.Node, err)
	}
	err = s.call(ctx, http.MethodPost, PathJoin, http.Header{"Content-Type": {"application/json"}}, bytes.NewReader(b), &a)
	return a, err
}

func (j *Join) sign(device ssh.Signer, token *JoinToken, provider spiffe.ID, binding []byte) error {
	if token != nil {
		j.Token = token.Public()
		secret, err := token.Secret()
		if err != nil {
			return err
		}
		sig, err := secret.Sign(nil, string(j.Statement(provider, binding)))
		if err != nil {
			return err
		}
		j.TokenSign = sig.String()
	}
	sig, err := sshsig.Sign(bytes.NewReader(j.Statement(provider, binding)), device, sshsig.HashSHA512, JoinNamespace)
	if err != nil {
		return err
	}
	j.Signature = string(sshsig.Armor(sig))
	return nil
}
