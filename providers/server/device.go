package server

import (
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// hostKeys parses the SSH host keys in a policy. The map keys are the nodes. The SSH host key of a
// node that joins is nil.
func hostKeys(p document.Policy) (map[spiffe.ID]ssh.PublicKey, error) {
	keys := map[spiffe.ID]ssh.PublicKey{}
	for _, d := range p.Devices {
		if d.Joins && d.SSHHostKey == "" {
			keys[d.ID] = nil
			continue
		}
		key, err := hostapi.ParseHostKey(d.SSHHostKey)
		if err != nil {
			return nil, fmt.Errorf("policy of %s: host key of %s: %w", p.Host, d.ID, err)
		}
		keys[d.ID] = key
	}
	return keys, nil
}

// deviceProof decodes the device proof of a request without a body.
func deviceProof(header string) (string, error) {
	proof, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return "", hostapi.Errorf(hostapi.CodeMalformed, "%s: %v", hostapi.HeaderDevice, err)
	}
	return string(proof), nil
}

// verifyDevice refuses a request with an SVID unless the connection was signed by the SSH host key
// that the policy contains for the node. Therefore a copied SVID is of no use, and neither is the
// SVID of a machine that was replaced, once the policy contains the key of the new machine.
func (a *Request) verifyDevice(f *compiledPolicy) error {
	key, ok := f.hostKeys[a.Caller]
	if !ok {
		return hostapi.Errorf(hostapi.CodeNotGranted, "the policy grants nothing to %s", a.Caller)
	}
	if key == nil {
		var err error
		if key, err = a.deviceKey(); err != nil {
			return err
		}
		a.device = ssh.FingerprintSHA256(key)
	}
	if a.request.Device == "" {
		return hostapi.Errorf(hostapi.CodeDeviceKey, "no device proof beside the certificate of %s: want one by its SSH host key %s", a.Caller, ssh.FingerprintSHA256(key))
	}
	st := hostapi.DeviceStatement{Node: a.Caller, Provider: f.self.ID, Binding: a.binding}
	var err error
	a.request.Device, err = a.peer.proves(a.request.Device, key, func() error { return st.Verify(a.request.Device, key) })
	if err != nil {
		return hostapi.Errorf(hostapi.CodeDeviceKey, "%s: %v: want one by its SSH host key %s, for this connection and %s: declare the host's key in the flake if it is another",
			a.Caller, err, ssh.FingerprintSHA256(key), f.self.ID)
	}
	return a.refuseRevoked(f, key)
}

// refuseRevoked refuses an SVID or SSH host key that is on the revocation list in force. The list
// may be newer than the connection.
func (a *Request) refuseRevoked(f *compiledPolicy, key ssh.PublicKey) error {
	list := f.roots.Revocations()
	err := list.CheckKey(ssh.FingerprintSHA256(key))
	if err == nil && a.svid != nil {
		err = list.CheckChain(a.chain, a.Caller)
	}
	var revoked *trust.RevokedError
	if errors.As(err, &revoked) {
		return hostapi.Revoked("", revoked)
	}
	return nil
}

// listBehind refuses to issue anything if this provider's revocation list is older than before a
// restore of its host, or older than the list of the caller. The second rule does not apply to a
// provider that never had a list because the documents of its host come with the closure.
func (a *Request) listBehind(f *compiledPolicy) error {
	want := a.newestList.Load()
	if f.roots.Revocations().InForce() > 0 {
		want = max(want, a.List)
	}
	return behind(f, want)
}

// ListBehind returns an error if this provider has an older revocation list than it once had, for
// example after its host was restored from a backup. It must then issue nothing. The error is an
// *hostapi.Error.
func (s *Server) ListBehind() error { return behind(s.Policies.now.Load(), s.newestList.Load()) }

func behind(f *compiledPolicy, want int64) error {
	has := f.roots.Revocations().InForce()
	if has < want {
		return hostapi.Errorf(hostapi.CodeListBehind, "revocation list %d is in force here, and there is list %d: this provider's host fetches it, or supply it with florctl revoke --supply", has, want).After(time.Second)
	}
	return nil
}

// Joining verifies the request of a device that wants to become a node, and returns a Call with the
// device's key in HostKey. It returns an error unless the policy lets a device join as that node,
// and the device has signed the request for this provider and this connection.
func (a *Request) Joining(j hostapi.Join) (Call, error) {
	f := a.Policies.now.Load()
	if key, ok := f.hostKeys[j.Node]; !ok || key != nil {
		return Call{}, hostapi.Errorf(hostapi.CodeJoinTransient,
			"%s: the policy here lets no device join as it: declare the host without sshHostKey, and publish that to this provider", j.Node)
	}
	key, err := j.Verify(f.self.ID, a.binding)
	if err != nil {
		return Call{}, hostapi.Errorf(hostapi.CodeUntrusted, "join request of %s: %v", j.Node, err)
	}
	call := a.call(f, j.Node)
	call.HostKey = key
	return call, nil
}

// enrolKey returns the key with which a node proves itself at enrolment, and the time by which it
// must have enrolled with this key for the first time. If the policy does not name the node, the
// key is nil.
func (f *compiledPolicy) enrolKey(p *hostapi.Proof) (key ssh.PublicKey, until time.Time, err error) {
	key, ok := f.hostKeys[p.Node]
	if !ok || key != nil {
		return key, until, nil
	}
	if p.Admission == nil {
		return nil, until, hostapi.Errorf(hostapi.CodeJoin, "enrolment of %s: it has no SSH host key in the policy, and no admission: flor join -", p.Node)
	}
	admitted, until, err := p.Admission.Verify(f.Cluster, p.Node, f.Trust.Signers())
	if err == nil {
		key, err = hostapi.ParseHostKey(admitted.Key)
	}
	if err != nil {
		return nil, until, hostapi.Errorf(hostapi.CodeJoin, "enrolment of %s: %v: flor join -", p.Node, err)
	}
	return key, until, nil
}

// deviceKey returns the key with which a joined node signed the connection. It is the key to which
// the node's SVID was issued.
func (a *Request) deviceKey() (ssh.PublicKey, error) {
	to := trust.GivenToDevice(a.svid)
	if to == "" {
		return nil, hostapi.Errorf(hostapi.CodeDeviceKey, "certificate of %s: issued to no device key, and the policy has no SSH host key of it any more: flor join -", a.Caller)
	}
	if a.request.Device == "" {
		return nil, hostapi.Errorf(hostapi.CodeDeviceKey, "no device proof beside the certificate of %s: want one by its device key %s", a.Caller, to)
	}
	key, err := hostapi.DeviceProofKey(a.request.Device)
	if err == nil && ssh.FingerprintSHA256(key) != to {
		err = hostapi.Errorf(hostapi.CodeDeviceKey, "signed by key %s", ssh.FingerprintSHA256(key))
	}
	if err != nil {
		return nil, hostapi.Errorf(hostapi.CodeDeviceKey, "%s: %s: want a proof by its device key %s", a.Caller, strings.TrimSpace(hostapi.AsError(err).Message), to)
	}
	return key, nil
}
