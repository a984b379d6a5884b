package server

import (
	"encoding/base64"
	"errors"
	"fmt"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// hostKeys parses the SSH host keys of a policy, by node; nil of those that join.
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

// deviceProof is the device proof of a request without a body.
func deviceProof(header string) (string, error) {
	proof, err := base64.StdEncoding.DecodeString(header)
	if err != nil {
		return "", hostapi.Errorf(hostapi.CodeMalformed, "%s: %v", hostapi.HeaderDevice, err)
	}
	return string(proof), nil
}

// verifyDevice refuses a request with an SVID unless the SSH host key that the policy has
// for the node signed the connection: a copied SVID obtains nothing, and a machine whose
// successor has another key nothing more from the moment the policy has that key.
func (a *request) verifyDevice(f *compiledPolicy) error {
	key, ok := f.hostKeys[a.caller]
	if !ok {
		return hostapi.Errorf(hostapi.CodeNotGranted, "the policy grants nothing to %s", a.caller)
	}
	if key == nil {
		var err error
		if key, err = a.deviceKey(); err != nil {
			return err
		}
		a.device = ssh.FingerprintSHA256(key)
	}
	if a.request.Device == "" {
		return hostapi.Errorf(hostapi.CodeDeviceKey, "no device proof beside the certificate of %s: want one by its SSH host key %s", a.caller, ssh.FingerprintSHA256(key))
	}
	st := hostapi.DeviceStatement{Node: a.caller, Provider: f.self.ID, Binding: a.binding}
	if err := a.peer.proves(a.request.Device, key, func() error { return st.Verify(a.request.Device, key) }); err != nil {
		return hostapi.Errorf(hostapi.CodeDeviceKey, "%s: %v: want one by its SSH host key %s, for this connection and %s: declare the host's key in the flake if it is another",
			a.caller, err, ssh.FingerprintSHA256(key), f.self.ID)
	}
	return a.refuseRevoked(f, key)
}

// refuseRevoked refuses an SVID and an SSH host key that the revocation list in force now has,
// which may have come since the caller connected.
func (a *request) refuseRevoked(f *compiledPolicy, key ssh.PublicKey) error {
	list := f.roots.Revocations()
	err := list.CheckKey(ssh.FingerprintSHA256(key))
	if err == nil && a.svid != nil {
		err = list.CheckChain(a.chain, a.caller)
	}
	var revoked *trust.RevokedError
	if errors.As(err, &revoked) {
		return hostapi.Revoked("", revoked)
	}
	return nil
}

// listBehind refuses to issue anything where this provider has an older revocation list than
// it had before its host was restored, or than the caller; the latter not where it never had
// any, and gets none, since its host's documents come with its closure.
func (a *request) listBehind(f *compiledPolicy) error {
	want := a.newestList.Load()
	if f.roots.Revocations().InForce() > 0 {
		want = max(want, a.list)
	}
	return behind(f, want)
}

// ListBehind returns why this provider issues nothing, where it has an older revocation list than
// it had before its host was restored. It is an *hostapi.Error, or nil.
func (s *Server) ListBehind() error { return behind(s.Policies.now.Load(), s.newestList.Load()) }

func behind(f *compiledPolicy, want int64) error {
	has := f.roots.Revocations().InForce()
	if has < want {
		return hostapi.Errorf(hostapi.CodeListBehind, "revocation list %d is in force here, and there is list %d: this provider's host fetches it, or supply it with florctl revoke --supply", has, want).After(time.Second)
	}
	return nil
}
