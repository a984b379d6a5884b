// Package fetch sends the requests for a host's needs to providers. It writes each request to disk
// before sending it. If the host dies before it receives the answer, it later sends the same
// request again and gets the same answer.
package fetch

import (
	"context"
	"crypto/tls"
	"net"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// Codes of errors that occur on this host, before it sends a request to a provider.
var (
	CodeDisk             = hostapi.Code{Name: "disk", Class: hostapi.Transient}     // the state directory cannot be read or written
	CodeHostKey          = hostapi.Code{Name: "host-key", Class: hostapi.Denied}    // the SSH host key is not the one declared
	CodeHostKeyTransient = hostapi.Code{Name: "host-key", Class: hostapi.Transient} // the SSH host key cannot be read
	CodeTPM              = hostapi.Code{Name: "tpm", Class: hostapi.Denied}         // the TPM does not hold the device key
	CodeTPMTransient     = hostapi.Code{Name: "tpm", Class: hostapi.Transient}      // the TPM does not answer or is missing
	CodeNoNode           = hostapi.Code{Name: "no-node", Class: hostapi.Invalid}    // the manifest has no need for the node's own SVID
)

// Host sends the requests of a host to its providers. It contains the host's documents and the
// location of its keys.
type Host struct {
	Layout   hostdir.Layout
	Manifest document.Manifest
	Serial   int64  // serial of the manifest
	Tag      string // tag of the documents in force
	// Grants returns the tag of the access grants that were received last, as hostapi.Client has
	// it. It is nil if the host fetches no grants.
	Grants func() string
	Roots  *trust.Roots // roots of trust, with the revocation list in force
	SVIDs  *hostdir.SVIDCache

	// HostKey is the path of the host's SSH private key. The host proves its identity with this key
	// when it enrols and in every later request.
	HostKey string

	// TPM is the path of the TPM that may hold the device key. This is a device or, for a software
	// TPM, a Unix socket. If TPM is empty, devicekey.DefaultTPM is used.
	TPM string

	// Dial connects to the address of a provider. If it is nil, TCP is used.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)

	reached sync.Map // name of the provider host that answered last, by process
	certIDs sync.Map // results of CertID, by need
}

// Reached returns the name of the provider host that answered the last request for a need of the
// same kind as the attempt. It can differ from the provider of the attempt, because a silent
// provider is replaced by another one.
func (h *Host) Reached(a Attempt) string {
	if name, ok := h.reached.Load(process{a.Provider, a.Need.Kind}); ok {
		return name.(string)
	}
	return a.Provider
}

// Attempt is one attempt to have a need fulfilled by a provider.
type Attempt struct {
	Need     document.Need
	Provider string // name of the provider host
	Digest   string // digest of the need
	Answers  int    // number of answers received so far; a pending request made before the last answer is obsolete
	Rotation int    // number of the secret rotation to request, see hostapi.Request; zero for none

	// Enrol makes the host enrol again to get the node's SVID, even if it has an SVID that seems
	// valid.
	Enrol bool
}

// Error is the error of a failed attempt. The field Received reports whether a provider has
// received the request.
type Error struct {
	*hostapi.Error
	Received bool
}

func (e *Error) Unwrap() error { return e.Error }

func local(code hostapi.Code, err error) *Error {
	return &Error{Error: hostapi.Errorf(code, "%v", err)}
}

// Fetch requests a need from a provider. The answer contains the values that the provider returned
// and those that this host adds, such as a private key.
func (p *Pass) Fetch(ctx context.Context, a Attempt) (hostapi.Answer, *Error) {
	h := p.host
	w, err := h.pending(a)
	if err != nil {
		return hostapi.Answer{}, local(CodeDisk, err)
	}
	answer, failed := p.send(ctx, a, h.request(a, w))
	if failed != nil {
		return hostapi.Answer{}, failed
	}
	if e := h.complete(a, w, &answer); e != nil {
		_ = h.Forget(a.Need.ID) // repeating the request would return the same answer
		return hostapi.Answer{}, &Error{Error: e, Received: true}
	}
	return answer, nil
}

// Artifact fetches the newest documents for this host from a provider. If the host already has
// them, the result contains no documents. The host's SSH host key need not be the one that the
// manifest in force declares, because the newest manifest may declare another one.
func (p *Pass) Artifact(ctx context.Context, a Attempt) (hostapi.Artifact, *Error) {
	calls, failed := p.way(a, p.host.hostKey)
	if failed != nil {
		return hostapi.Artifact{}, failed
	}
	artifact, err := calls.Artifact(ctx)
	return artifact, received(err)
}

// Checkpoint fetches the newest checkpoint of the audit log that a provider keeps for a kind of
// need. The answer includes a proof that the log still contains the rows of the host's earlier
// checkpoint. The caller passes the size of that checkpoint, or 0.
func (p *Pass) Checkpoint(ctx context.Context, provider, kind string, from uint64) (hostapi.Checkpoint, *hostapi.Error) {
	calls, failed := p.way(Attempt{Provider: provider, Need: document.Need{Kind: kind}}, p.host.hostKey)
	if failed != nil {
		return hostapi.Checkpoint{}, failed.Error
	}
	answer, err := calls.Checkpoint(ctx, kind, from)
	if err != nil {
		return answer, hostapi.AsError(err)
	}
	return answer, nil
}

// CRL fetches the newest CRL from a provider that issues certificates. The caller passes the number
// of the CRL that the host already has, or "". If no CRL is newer, the result contains none.
func (p *Pass) CRL(ctx context.Context, provider, has string) (hostapi.CRL, *hostapi.Error) {
	calls, failed := p.way(Attempt{Provider: provider, Need: document.Need{Kind: document.KindCert}}, p.host.declaredHostKey)
	if failed != nil {
		return hostapi.CRL{}, failed.Error
	}
	answer, err := calls.CRL(ctx, document.KindCert, has)
	if err != nil {
		return answer, hostapi.AsError(err)
	}
	return answer, nil
}

func (p *Pass) send(ctx context.Context, a Attempt, r hostapi.Request) (hostapi.Answer, *Error) {
	h := p.host
	if h.IsNode(a.Need) {
		if _, failed := h.svid(); failed != nil || a.Enrol {
			return p.enrol(ctx, a, r)
		}
	}
	calls, failed := p.way(a, h.declaredHostKey)
	if failed != nil {
		return hostapi.Answer{}, failed
	}
	answer, err := calls.Do(ctx, hostapi.Path(a.Need.Kind), r)
	if err != nil && hostapi.AsError(err).Code == hostapi.CodeRevoked.Name && h.IsNode(a.Need) {
		return p.enrol(ctx, a, r) // perhaps only older certificates of it are revoked
	}
	return answer, received(err)
}

// enrol requests the node's SVID with an enrolment proof, over a new connection. A pass returned by
// After continues on that connection.
func (p *Pass) enrol(ctx context.Context, a Attempt, r hostapi.Request) (hostapi.Answer, *Error) {
	h := p.host
	key, failed := h.declaredHostKey()
	if failed != nil {
		return hostapi.Answer{}, failed
	}
	client := h.client(a, nil, key)
	if client.Admission, failed = h.admission(ctx); failed != nil {
		return hostapi.Answer{}, failed
	}
	calls := client.Calls()
	answer, err := calls.Enrol(ctx, r)
	if err != nil {
		calls.Close()
		return answer, received(err)
	}
	p.keep(process{a.Provider, a.Need.Kind}, calls)
	return answer, nil
}

func received(err error) *Error {
	if err == nil {
		return nil
	}
	e := hostapi.AsError(err)
	return &Error{Error: e, Received: e.Code != CodeTPM.Name}
}

func (h *Host) client(a Attempt, svid *tls.Certificate, key ssh.Signer) *hostapi.Client {
	reached := func(id spiffe.ID) {
		for _, name := range a.Need.Providers {
			if h.Manifest.Providers[name][a.Need.Kind].ID == id {
				h.reached.Store(process{a.Provider, a.Need.Kind}, name)
			}
		}
	}
	var others []document.Provider
	for _, name := range a.Need.Providers {
		if name != a.Provider {
			others = append(others, h.Manifest.Providers[name][a.Need.Kind])
		}
	}
	roots := h.Roots
	if a.Need.Kind == document.KindConfig {
		// The documents and lists are signed. A list that reinstates the provider may come only
		// from itself.
		roots = roots.With(nil)
	}
	return &hostapi.Client{
		Grants: h.grants(), Node: h.Manifest.Identity.ID, Provider: h.Manifest.Providers[a.Provider][a.Need.Kind], Others: others, Reached: reached, Roots: roots,
		Serial: h.Serial, Tag: h.Tag, Revocations: h.Roots.Revocations().InForce(), SVID: svid, HostKey: key, Dial: h.Dial,
	}
}

func (h *Host) grants() string {
	if h.Grants == nil {
		return ""
	}
	return h.Grants()
}
