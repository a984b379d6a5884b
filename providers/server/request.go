package server

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"io"
	"net/http"
	"strconv"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/terminal"
)

// maxNeed is the longest name of a need: a DNS label.
const maxNeed = 63

// request is one on its way to a decision.
type request struct {
	*Server
	row    Row
	caller spiffe.ID // zero when it has no certificate and may enrol
	svid   *x509.Certificate
	chain  []*x509.Certificate // that it came with
	peer   *peer

	// enrolled is that the chain was issued on this connection: the client presented none.
	enrolled bool

	request hostapi.Request
	binding []byte // of the connection
	device  string // fingerprint of the caller's device key, where the policy has no SSH host key
	list    int64  // number of the caller's revocation list, zero for none, below where it knows of none
	release func() // ends the turn of its need; nil before that
}

// identify verifies the caller's certificate, which it presented or received on this connection:
// chain, time, and exactly one SPIFFE ID, which is a node's. A caller without one is let through
// when it may enrol.
func (a *request) identify(ctx context.Context, cs *tls.ConnectionState, mayEnrol bool) error {
	var err error
	at := peerOf(ctx)
	if a.binding, err = at.bind(cs); err != nil {
		return err
	}
	chain := at.certificates(cs)
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
	a.row.Caller = id.String() // also one that is revoked
	if err != nil {
		return err
	}
	if id.Kind() != spiffe.KindNode {
		return hostapi.Errorf(hostapi.CodeUntrusted, "certificate of %s: only nodes call providers", id)
	}
	a.caller, a.svid, a.chain, a.enrolled = id, chain[0], chain, len(cs.PeerCertificates) == 0
	return nil
}

// codeOf is the code of an error, empty for none.
func codeOf(err error) string {
	if err == nil {
		return ""
	}
	return hostapi.AsError(err).Code
}

// receiveList reads which revocation list the caller has.
func (a *request) receiveList(header http.Header) (err error) {
	a.list = -1
	if text := header.Get(hostapi.HeaderRevocations); text != "" {
		if a.list, err = strconv.ParseInt(text, 10, 64); err != nil || a.list < 0 {
			return hostapi.Errorf(hostapi.CodeMalformed, "%s %.40q: want the number of a list, 0 for none", hostapi.HeaderRevocations, text)
		}
	}
	return nil
}

// receive reads the request and checks that its idempotency key is its own.
func (a *request) receive(body io.Reader, header http.Header) error {
	key := header.Get(hostapi.HeaderKey)
	malformed := func(format string, args ...any) error {
		return hostapi.Errorf(hostapi.CodeMalformed, format, args...)
	}
	if err := a.receiveList(header); err != nil {
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
	a.row.Need, a.row.Serial = terminal.Text(r.Need), r.Serial
	if r.Proof != nil && a.enrolled { // once more, as one who presented no certificate
		a.caller, a.svid, a.chain, a.peer, a.enrolled = spiffe.ID{}, nil, nil, nil, false
	}
	claimed := a.caller
	switch {
	case r.Proof == nil && a.caller.IsZero():
		return hostapi.Errorf(hostapi.CodeUntrusted, "neither a client certificate nor a proof: enrol with a proof, or request with the node's SVID")
	case r.Proof != nil && !a.caller.IsZero():
		return malformed("a proof on a connection with a client certificate: leave out one of them")
	case r.Proof != nil && r.Proof.Node.IsZero():
		return malformed("proof: names no node")
	case r.Proof != nil:
		claimed = r.Proof.Node
		a.row.Caller, a.row.Enrolment = claimed.String(), true
	}
	want, err := r.Key(claimed)
	if err != nil {
		return malformed("%v", err)
	}
	a.row.Key = want
	if key != want {
		return hostapi.Errorf(hostapi.CodeKeyMismatch, "%s %.80q: belongs to another request, want %q", hostapi.HeaderKey, key, want)
	}
	return nil
}
