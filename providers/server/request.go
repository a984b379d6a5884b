package server

import (
	"crypto/x509"
	"io"
	"net/http"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/terminal"
)

// maxNeed is the largest length of the name of a need. The name is a DNS label.
const maxNeed = 63

// Request is a host's request from its receipt until it is decided. A request that waits for a
// change may be decided several times.
type Request struct {
	*Server
	Row    Row       // audit row of the request, as far as it is known
	Caller spiffe.ID // node that sent the request; zero if it has no certificate and may enrol
	List   int64     // number of the caller's revocation list; zero for none, negative if the caller's release knows of none

	svid  *x509.Certificate
	chain []*x509.Certificate // that it came with
	peer  *peer

	// enrolled reports whether the chain was issued on this connection and not presented by the
	// client.
	enrolled bool

	request hostapi.Request
	binding []byte // of the connection
	device  string // fingerprint of the caller's device key, where the policy has no SSH host key
	format  string // the newest that the caller announced
	release func() // ends the turn of its need; nil before that
}

// Request returns the Request for an incoming HTTP request. Call Identify or IdentifyNode next, to
// verify who sent it.
func (s *Server) Request(r *http.Request) *Request {
	// A copy, since a request that waits would hold all headers by it.
	return &Request{Server: s, Row: Row{From: r.RemoteAddr, Kind: s.Kind.Name}, format: strings.Clone(r.Header.Get(document.HeaderFormat))}
}

// Identify verifies the caller's certificate, which the caller presented or received on this
// connection. The chain and the time must be valid, and the certificate must contain exactly one
// SPIFFE ID, that of a node. If mayEnrol is true, a caller without a certificate is accepted as
// well. After Identify has verified a caller, its connection is not closed to make room for others.
func (a *Request) Identify(r *http.Request, mayEnrol bool) error {
	var err error
	at := peerOf(r.Context())
	if a.binding, err = at.bind(r.TLS); err != nil {
		return err
	}
	chain := at.certificates(r.TLS)
	if len(chain) == 0 {
		if !mayEnrol {
			return hostapi.Errorf(hostapi.CodeUntrusted, "no client certificate: enrol first, then request with the node's SVID")
		}
		return nil
	}
	a.peer = at
	id, err := a.peer.verify(chain, a.Policies.now.Load().roots)
	if code := codeOf(err); code == hostapi.CodeUntrusted.Name || code == hostapi.CodeRevoked.Name {
		id, err = a.peer.verify(chain, a.Policies.rootsAfter())
	}
	a.Row.Caller = id.String() // also one that is revoked
	if err != nil {
		return err
	}
	if id.Kind() != spiffe.KindNode {
		return hostapi.Errorf(hostapi.CodeUntrusted, "certificate of %s: only nodes call providers", id)
	}
	a.Caller, a.svid, a.chain, a.enrolled = id, chain[0], chain, len(r.TLS.PeerCertificates) == 0
	conns.Vouch(r.Context())
	return nil
}

// IdentifyNode is like Identify, but for a request without a body. It reads the proof that the
// caller has the node's device key from a header. It does not verify the proof, which Granted does.
func (a *Request) IdentifyNode(r *http.Request) error {
	err := a.Identify(r, false)
	if err == nil {
		a.request.Device, err = deviceProof(r.Header.Get(hostapi.HeaderDevice))
	}
	return err
}

// Granted decides whether a request that IdentifyNode has accepted is permitted, and returns its
// Call. It returns an error unless the policy lets the node request a need of this kind, and the
// caller has proved for this connection that it has the node's device key.
func (a *Request) Granted() (Call, error) {
	f := a.Policies.now.Load()
	if err := a.verifyDevice(f); err != nil {
		return Call{}, f.policyBehind(err, a.Row.Serial)
	}
	g, ok := f.reads[a.Caller]
	if !ok {
		return Call{}, f.policyBehind(hostapi.Errorf(hostapi.CodeNotGranted,
			"documents of node %q: the policy grants it no need of kind %q", a.Caller.Name(), a.Kind.Name), a.Row.Serial)
	}
	a.Row.Need = g.Need
	call := a.call(f, a.Caller)
	call.SVID, call.Grant = a.svid, g
	return call, nil
}

// codeOf returns the code of an error. It returns "" if the error has no code.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return hostapi.AsError(err).Code
}

// ReceiveList reads the number of the caller's revocation list from the headers of the request into
// List. Without such a header, the number is -1.
func (a *Request) ReceiveList(header http.Header) (err error) {
	a.List = -1
	if text := header.Get(hostapi.HeaderRevocations); text != "" {
		if a.List, err = strconv.ParseInt(text, 10, 64); err != nil || a.List < 0 {
			return hostapi.Errorf(hostapi.CodeMalformed, "%s %.40q: want the number of a list, 0 for none", hostapi.HeaderRevocations, text)
		}
	}
	return nil
}

// receive reads the request and checks the idempotency key of the request.
func (a *Request) receive(body io.Reader, header http.Header) error {
	key := header.Get(hostapi.HeaderKey)
	malformed := func(format string, args ...any) error {
		return hostapi.Errorf(hostapi.CodeMalformed, format, args...)
	}
	if err := a.ReceiveList(header); err != nil {
		return err
	}
	b, err := io.ReadAll(body)
	if err != nil {
		return malformed("request: %v: want at most %d bytes, sent without delay", err, hostapi.MaxRequest)
	}
	if err := strictjson.Decode(b, &a.request); err != nil {
		return malformed("request: %v", err)
	}
	r := a.request
	if len(r.Need) > maxNeed {
		return malformed("need: a name of %d bytes, want at most %d", len(r.Need), maxNeed)
	}
	a.Row.Need, a.Row.Serial = terminal.Text(r.Need), r.Serial
	if r.Proof != nil && a.enrolled { // once more, as one who presented no certificate
		a.Caller, a.svid, a.chain, a.peer, a.enrolled = spiffe.ID{}, nil, nil, nil, false
	}
	claimed := a.Caller
	switch {
	case r.Proof == nil && a.Caller.IsZero():
		return hostapi.Errorf(hostapi.CodeUntrusted, "neither a client certificate nor a proof: enrol with a proof, or request with the node's SVID")
	case r.Proof != nil && !a.Caller.IsZero():
		return malformed("a proof on a connection with a client certificate: leave out one of them")
	case r.Proof != nil && r.Proof.Node.IsZero():
		return malformed("proof: names no node")
	case r.Proof != nil:
		claimed = r.Proof.Node
		a.Row.Caller, a.Row.Enrolment = claimed.String(), true
	}
	want, err := r.Key(claimed)
	if err != nil {
		return malformed("%v", err)
	}
	a.Row.Key = want
	if key != want {
		return hostapi.Errorf(hostapi.CodeKeyMismatch, "%s %.80q: belongs to another request, want %q", hostapi.HeaderKey, key, want)
	}
	return nil
}
