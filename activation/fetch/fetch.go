// Package fetch requests one need from a provider on behalf of the host. A request is on
// disk before it is sent, so a host that dies in between sends the same request again and
// gets the same answer.
package fetch

import (
	"context"
	"crypto/tls"
	"net"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
)

// Codes of failures on this host itself. No provider received a request.
const (
	CodeDisk    = "disk"     // transient: the state directory cannot be read or written
	CodeHostKey = "host-key" // denied: the SSH host key is not the one declared
	CodeNoNode  = "no-node"  // invalid: no need of the manifest is for the node's own SVID
)

// Host is on whose behalf needs are fetched.
type Host struct {
	Layout   florete.Layout
	Manifest florete.Manifest
	Serial   int64 // of the manifest
	Roots    *florete.Roots

	// HostKey is the file of the SSH private key that proves the node, at enrolment and
	// in every request but that for documents.
	HostKey string

	// Dial connects to a provider's address; nil for TCP.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
}

// Attempt is one request for a need.
type Attempt struct {
	Need     florete.Need
	Provider string // host name
	Digest   string // of the need
	Answers  int    // so far: what was pending before the last is answered

	// Enrol requests the node's SVID by proof even when there is one that seems valid.
	Enrol bool
}

// Error is a failure. Received reports whether the request reached the provider.
type Error struct {
	*api.Error
	Received bool
}

func (e *Error) Unwrap() error { return e.Error }

func local(kind api.ErrorKind, code string, err error) *Error {
	return &Error{Error: api.Errorf(kind, code, "%v", err)}
}

// Fetch gets the values that answer a need, with what the host adds to them.
func (h *Host) Fetch(ctx context.Context, a Attempt) (api.Answer, *Error) {
	p, err := h.pending(a)
	if err != nil {
		return api.Answer{}, local(api.Transient, CodeDisk, err)
	}
	r := api.Request{Need: a.Need.ID, Serial: h.Serial, Generation: a.Need.Generation, Body: p.Body}
	answer, failed := h.send(ctx, a, api.Path(a.Need.Kind), r)
	if failed != nil {
		return api.Answer{}, failed
	}
	if e := h.complete(a, p, &answer); e != nil {
		_ = h.Forget(a.Need.ID) // the same request would get the same answer
		return api.Answer{}, &Error{Error: e, Received: true}
	}
	return answer, nil
}

// Artifact gets the documents that a provider has for this node. They may declare another
// SSH host key than the manifest in force.
func (h *Host) Artifact(ctx context.Context, a Attempt) (api.Artifact, *Error) {
	svid, failed := h.svid()
	if failed != nil {
		return api.Artifact{}, failed
	}
	key, failed := h.hostKey()
	if failed != nil {
		return api.Artifact{}, failed
	}
	artifact, err := h.client(a, svid, key).Artifact(ctx)
	if err != nil {
		return api.Artifact{}, &Error{Error: api.AsError(err), Received: true}
	}
	return artifact, nil
}

// Report sends what this host reports of itself to a provider of its documents, and returns
// the highest sequence of its reports that the provider has.
func (h *Host) Report(ctx context.Context, provider string, report []byte) (int64, *api.Error) {
	svid, failed := h.svid()
	if failed != nil {
		return 0, failed.Error
	}
	key, failed := h.hostKey()
	if failed != nil {
		return 0, failed.Error
	}
	a := Attempt{Provider: provider, Need: florete.Need{Kind: florete.KindConfig}}
	highest, err := h.client(a, svid, key).Report(ctx, report)
	if err != nil {
		return 0, api.AsError(err)
	}
	return highest, nil
}

func (h *Host) send(ctx context.Context, a Attempt, path string, r api.Request) (api.Answer, *Error) {
	svid, failed := h.svid()
	enrol := h.isNode(a.Need) && (failed != nil || a.Enrol)
	if failed != nil && !enrol {
		return api.Answer{}, failed
	}
	key, failed := h.declaredHostKey()
	if failed != nil {
		return api.Answer{}, failed
	}
	if enrol {
		answer, err := h.client(a, nil, key).Enrol(ctx, r)
		return answer, received(err)
	}
	answer, err := h.client(a, svid, key).Do(ctx, path, r)
	return answer, received(err)
}

func received(err error) *Error {
	if err == nil {
		return nil
	}
	return &Error{Error: api.AsError(err), Received: true}
}

func (h *Host) client(a Attempt, svid *tls.Certificate, key ssh.Signer) *api.Client {
	return &api.Client{
		Node: h.Manifest.Identity.ID, Provider: h.Manifest.Providers[a.Provider][a.Need.Kind], Roots: h.Roots,
		Serial: h.Serial, SVID: svid, HostKey: key, Dial: h.Dial,
	}
}
