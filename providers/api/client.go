package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete"
)

// Endpoints.
const (
	PathNonce    = "/cert/nonce"
	PathReport   = "/config/report"
	PathArtifact = "/config/artifact/" // then the node's name and ?serial=, that of its manifest
)

// Path is where needs of a kind are requested, with POST.
func Path(kind string) string { return "/" + kind + "/request" }

// Headers: the idempotency key of a request, and where a request has no body its device
// proof, in base64.
const (
	HeaderKey    = "Idempotency-Key"
	HeaderDevice = "Device-Proof"
)

// The longest request and answers, in bytes. A need's longest answer is a file of a MiB,
// escaped. The longest documents are those of a provider's host: 17 MB with 10,000 hosts.
const (
	MaxRequest  = 64 << 10
	MaxAnswer   = 8 << 20
	MaxArtifact = 32 << 20
	MaxReport   = 1 << 20
)

// Client sends requests to one provider on behalf of one node. Each call is a TLS connection
// of its own, so credentials are never older than the call. Every error is an
// *Error: what goes wrong on the way is transient.
type Client struct {
	Node     florete.ID       // the caller
	Provider florete.Provider // whom, and exactly the identity it must present
	Roots    *florete.Roots

	// Serial is the node's manifest's, for Artifact: a provider with an older
	// policy then returns that. Requests carry their own.
	Serial int64

	// SVID is the node's certificate; nil before enrolment.
	SVID *tls.Certificate

	// HostKey is the node's SSH host key, which proves the node at enrolment and in
	// every request.
	HostKey ssh.Signer

	// Dial connects to an address of the provider as it is written; nil for TCP, to each
	// address that it resolves to.
	Dial dialer

	// Timeout bounds one call; zero for 30 seconds.
	Timeout time.Duration
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Do sends a request and returns its answer.
func (c *Client) Do(ctx context.Context, path string, r Request) (Answer, error) {
	if c.SVID == nil {
		return Answer{}, Errorf(Denied, CodeUntrusted, "need %s: %s has no SVID yet: it must enrol first", r.Need, c.Node)
	}
	s, err := c.connect(ctx, c.SVID)
	if err != nil {
		return Answer{}, err
	}
	defer s.close()
	if r.Device, err = s.proveDevice(); err != nil {
		return Answer{}, err
	}
	return s.request(path, r)
}

// Enrol requests the node's own SVID without having one. Nonce and request travel
// on one connection, to which the proof by HostKey is bound. r.Body is a CertBody.
func (c *Client) Enrol(ctx context.Context, r Request) (Answer, error) {
	var body CertBody
	if err := florete.Decode(r.Body, &body); err != nil {
		return Answer{}, Errorf(Invalid, CodeMalformed, "need %s: body: %v", r.Need, err)
	}
	block, _ := pem.Decode([]byte(body.CSR))
	if block == nil {
		return Answer{}, Errorf(Invalid, CodeMalformed, "need %s: csr is not PEM", r.Need)
	}
	s, err := c.connect(ctx, nil)
	if err != nil {
		return Answer{}, err
	}
	defer s.close()
	var nonce Nonce
	if err := s.call(http.MethodPost, PathNonce, http.Header{}, nil, &nonce); err != nil {
		return Answer{}, err
	}
	binding, err := s.binding()
	if err != nil {
		return Answer{}, err
	}
	r.Proof, err = Statement{Node: c.Node, Provider: c.Provider.ID, Nonce: nonce.Nonce, CSR: block.Bytes, Binding: binding}.Sign(c.HostKey)
	if err != nil {
		return Answer{}, Errorf(Invalid, CodeMalformed, "need %s: %v", r.Need, err)
	}
	return s.request(Path("cert"), r)
}

// Artifact fetches the documents of this node.
func (c *Client) Artifact(ctx context.Context) (Artifact, error) {
	if c.SVID == nil {
		return Artifact{}, Errorf(Denied, CodeUntrusted, "%s has no SVID yet: it must enrol first", c.Node)
	}
	s, err := c.connect(ctx, c.SVID)
	if err != nil {
		return Artifact{}, err
	}
	defer s.close()
	header, err := s.device()
	if err != nil {
		return Artifact{}, err
	}
	var a Artifact
	err = s.call(http.MethodGet, fmt.Sprintf("%s%s?serial=%d", PathArtifact, c.Node.Name(), c.Serial), header, nil, &a)
	return a, err
}

// Report sends what the node reports of itself, a florete.HostReport, and returns the
// highest sequence of its reports that the provider has.
func (c *Client) Report(ctx context.Context, report []byte) (int64, error) {
	if c.SVID == nil {
		return 0, Errorf(Denied, CodeUntrusted, "%s has no SVID yet: it must enrol first", c.Node)
	}
	s, err := c.connect(ctx, c.SVID)
	if err != nil {
		return 0, err
	}
	defer s.close()
	header, err := s.device()
	if err != nil {
		return 0, err
	}
	header.Set("Content-Type", "application/json")
	var r Reported
	err = s.call(http.MethodPost, PathReport, header, bytes.NewReader(report), &r)
	return r.Sequence, err
}
