package server

import (
	"context"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/store"
)

// answer decides about a request for a need.
func (a *Request) answer(ctx context.Context, enroller Enroller) (any, Change, error) {
	f := a.Policies.now.Load()
	call := a.call(f, a.Caller)
	call.SVID, call.Request = a.svid, a.request
	var c Change
	if a.request.Proof == nil {
		if err := a.verifyDevice(f); err != nil {
			return nil, c, f.policyBehind(err, a.request.Serial)
		}
		call.Device = a.device
	} else {
		var err error
		if call.HostKey, call.Until, err = f.enrolKey(a.request.Proof); err != nil {
			return nil, c, f.policyBehind(err, a.request.Serial)
		}
		if call.HostKey != nil && a.request.Proof.Admission != nil && f.hostKeys[a.request.Proof.Node] == nil {
			a.device = ssh.FingerprintSHA256(call.HostKey)
		}
		call.Device = a.device
		d, err := enroller.Authenticate(ctx, call, a.binding)
		if err != nil {
			return nil, c, f.policyBehind(err, a.request.Serial)
		}
		c.Add(d)
		call.Caller = a.request.Proof.Node
		if err := a.refuseRevoked(f, call.HostKey); err != nil {
			return nil, c, err
		}
	}
	if err := a.listBehind(f); err != nil {
		return nil, c, err
	}
	var err error
	if call.Grant, err = f.grant(call.Caller, a.Kind.Name, a.request); err != nil {
		return nil, c, f.policyBehind(err, a.request.Serial)
	}
	if enroller != nil && call.SVID != nil {
		on, err := a.peer.admit(func() (store.Cond, error) { return enroller.Admit(ctx, call) })
		if err != nil {
			return nil, c, err
		}
		c.If = append(c.If, on)
	}
	at := place(call.Caller, a.request.Need)
	if err := a.take(ctx, at); err != nil {
		return nil, c, err
	}
	if call.Rotation, err = f.rotate(ctx, a.Kind.Name, call); err != nil {
		return nil, c, err
	}
	last, revision, err := a.recall(ctx, at, a.Row.Key)
	if err != nil {
		return nil, c, err
	}
	call.last = func() (hostapi.Answer, error) { return a.answered(ctx, at, last) }
	if last.same(a.Row.Key, call) {
		a.Row.Replayed = true
		answer, err := a.Key.Open(at, last.Answer)
		return encoded(answer), c, err
	}
	d, err := f.compiled.answer(ctx, call)
	if err != nil {
		return nil, c, err
	}
	answer, err := a.keep(&c, at, revision, call, d)
	return answer, c, err
}

// call returns the call of a node, to be decided under a policy.
func (a *Request) call(f *compiledPolicy, node spiffe.ID) Call {
	return Call{Caller: node, Policy: f.Policy, Serial: f.serial, Revoked: f.roots.Revocations(), Now: a.Row.Time}
}
