package cert

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/ca"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Device is the record of the machine that has enrolled as a node. Its key in the store is
// cert/device/<node>. SSHHostKey is the key with which the machine proved itself, and with which it
// can enrol again. Times are in Unix seconds.
type Device struct {
	SSHHostKey string `json:"sshHostKey"`
	Since      int64  `json:"since"`    // first enrolment with this key
	Enrolled   int64  `json:"enrolled"` // last enrolment

	// Serial is the serial of the newest policy under which the node has enrolled.
	Serial int64 `json:"serial,omitempty"`

	// Joined reports whether the node's key was admitted by a join request. If Joined is false, the
	// key is in the policy.
	Joined bool `json:"joined,omitempty"`
}

const (
	devicePrefix = "cert/device/"
	noncePrefix  = "cert/nonce/"
)

// Nonce returns a random value that a node includes in its proof when it enrols at this provider.
// Each nonce can be used once. Nonce returns "" if the policy does not include kind "cert".
func (i *Issuer) Nonce(now time.Time) string {
	p := i.Policy()
	if p == nil {
		return "" // no proof verifies with an empty nonce
	}
	return i.nonces.make(p.Provider[Name].ID, now)
}

// Authenticate verifies the proof with which a node enrols. The node's host key, c.HostKey, must
// have signed the proof. The proof must be for this provider, this certificate request and this
// connection, and must contain an unused nonce of this provider. When the returned decision is
// committed, the nonce counts as used and the machine is recorded.
func (i *Issuer) Authenticate(ctx context.Context, c server.Call, binding []byte) (server.Decision, error) {
	var none server.Decision
	proof, provider := c.Request.Proof, c.Policy.Provider[Name].ID
	if err := i.nonces.check(proof.Nonce, provider, c.Now); err != nil {
		return none, hostapi.Errorf(hostapi.CodeBadNonce, "nonce: %v: request a new one", err)
	}
	body, err := decode(c.Request)
	if err != nil {
		return none, err
	}
	csr, err := ca.DecodeCSR([]byte(body.CSR)) // Answer checks it
	if err != nil {
		return none, malformed(c.Request, err)
	}
	if body.ID != proof.Node {
		return none, hostapi.Errorf(hostapi.CodeUntrusted, "enrolment of %s: requests an SVID for %s, want one for the node: request others with the node's SVID", proof.Node, body.ID)
	}
	if c.HostKey == nil {
		return none, hostapi.Errorf(hostapi.CodeNotGranted, "enrolment of %s: not among the nodes that the policy lets enrol", proof.Node)
	}
	st := hostapi.Statement{Node: proof.Node, Provider: provider, Nonce: proof.Nonce, CSR: csr, Binding: binding}
	if err := st.Verify(proof, c.HostKey); err != nil {
		return none, hostapi.Errorf(hostapi.CodeUntrusted, "enrolment of %s: %v: want a proof by host key %s for this connection", proof.Node, err, ssh.FingerprintSHA256(c.HostKey))
	}
	return i.consume(ctx, c)
}

// consume marks the nonce of an enrolment proof as used, and records the node's device.
func (i *Issuer) consume(ctx context.Context, c server.Call) (d server.Decision, err error) {
	proof, now := c.Request.Proof, c.Now
	sum := sha256.Sum256([]byte(proof.Nonce))
	used := noncePrefix + hex.EncodeToString(sum[:])
	switch _, err := i.Store.Get(ctx, used); {
	case err == nil:
		return d, hostapi.Errorf(hostapi.CodeReplayed, "enrolment of %s: the nonce was used before: request a new one", proof.Node)
	case !errors.Is(err, store.ErrNotFound):
		return d, err
	}
	was, modified, err := i.device(ctx, proof.Node)
	if err != nil {
		return d, err
	}
	is := Device{SSHHostKey: strings.TrimSpace(string(ssh.MarshalAuthorizedKey(c.HostKey))), Since: now.Unix(), Enrolled: now.Unix(), Serial: c.Serial, Joined: c.Device != ""}
	if err := joins(c, was, is); err != nil {
		return d, err
	}
	switch {
	case was.SSHHostKey == is.SSHHostKey:
		is.Since, is.Serial = min(was.Since, is.Since), max(was.Serial, is.Serial)
	case c.Policy.Store != nil && was.Serial > c.Serial:
		return d, hostapi.Errorf(hostapi.CodePolicyBehind, "enrolment of %s: a machine with another host key enrolled at another replica, whose policy has serial %d; the policy here has serial %d: deploy this provider",
			proof.Node, was.Serial, c.Serial)
	}
	lease, err := i.used.lease(ctx, i.Store, now)
	if err != nil {
		return d, err
	}
	device, err := json.Marshal(is)
	if err != nil {
		return d, err
	}
	return server.Decision{
		If: []store.Cond{{Key: used}, {Key: devicePrefix + proof.Node.Name(), Modified: modified}},
		Then: []store.Op{
			{Key: used, Lease: lease},
			store.Put(devicePrefix+proof.Node.Name(), device),
		},
	}, nil
}

// joins returns an error for an admitted device if another device has enrolled as the node, or if
// the token that admits the device is no longer valid.
func joins(c server.Call, was, is Device) error {
	if !is.Joined || was.SSHHostKey == is.SSHHostKey {
		return nil
	}
	node := c.Request.Proof.Node
	if key, err := hostapi.ParseHostKey(was.SSHHostKey); was.Joined && err == nil {
		fingerprint := ssh.FingerprintSHA256(key)
		if c.Revoked.CheckKey(fingerprint) == nil {
			return hostapi.Errorf(hostapi.CodeJoin, "enrolment of %s: another device, with key %s, has enrolled as this node: if the new device replaces it, run florctl revoke --host-key %[2]s", node, fingerprint)
		}
	}
	if !c.Until.IsZero() && c.Now.After(c.Until) {
		return hostapi.Errorf(hostapi.CodeJoin, "enrolment of %s: the join token that admits its device expired at %s: florctl join approve %s", node, c.Until.UTC().Format(time.RFC3339), node.Name())
	}
	return nil
}

// Admit refuses a caller whose SVID was issued before another machine enrolled as the same node.
// Otherwise a machine that was replaced could still read documents with its old SVID. The error is
// transient, because the right machine can enrol again. The returned condition fails once another
// machine enrols as the node.
func (i *Issuer) Admit(ctx context.Context, c server.Call) (store.Cond, error) {
	d, modified, err := i.device(ctx, c.Caller)
	on := store.Cond{Key: devicePrefix + c.Caller.Name(), Modified: modified}
	if err != nil || d.SSHHostKey == "" { // enrolled at another provider, or the state was lost
		return on, err
	}
	if since, issued := time.Unix(d.Since, 0), c.SVID.NotBefore.Add(trust.Backdated); issued.Before(since) {
		return on, hostapi.Errorf(hostapi.CodeUntrustedTransient, "certificate of %s: issued at %s, but another machine enrolled as this node at %s: enrol again with the host key",
			c.Caller, issued.Format(time.RFC3339), since.UTC().Format(time.RFC3339))
	}
	return on, nil
}

// device returns the record of a node's device, and the revision of the store that wrote the
// record. Both are zero if the node never enrolled here.
func (i *Issuer) device(ctx context.Context, node spiffe.ID) (d Device, modified int64, err error) {
	modified, err = store.Load(ctx, i.Store, devicePrefix+node.Name(), &d)
	return d, modified, err
}
