package hostapi

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// Endpoints.
const (
	PathNonce    = "/cert/nonce"
	PathReport   = "/config/report"
	PathArtifact = "/config/artifact/" // then the node's name and ?serial=, that of its manifest
	PathWatch    = "/config/watch"     // then ?from=, the revision of the last answer, and serial=
)

// Path is where needs of a kind are requested, with POST.
func Path(kind string) string { return "/" + kind + "/request" }

// Headers: the idempotency key of a request; where a request has no body its device
// proof, in base64; the Tag of the documents that a node has and a provider returns
// (RFC 9110 section 13.1.2); and the revision from which a watch goes on.
const (
	HeaderKey      = "Idempotency-Key"
	HeaderDevice   = "Device-Proof"
	HeaderHas      = "If-None-Match"
	HeaderTag      = "ETag"
	HeaderRevision = "Documents-Revision"

	// HeaderRevocations is the number of the revocation list that the host has, 0 for none.
	// Without it the host knows of no list, and is offered none.
	HeaderRevocations = "Revocations"
)

// The longest request and answers, in bytes. A need's longest answer is a file of a MiB,
// escaped. The longest documents are those of a provider's host: 17 MB with 10,000 hosts.
const (
	MaxRequest  = 64 << 10
	MaxAnswer   = 8 << 20
	MaxArtifact = 32 << 20
	MaxReport   = 1 << 20
)

// Client sends requests to one provider on behalf of one node. Calls share one
// TLS connection, and every other call has one of its own: credentials are never older than the
// connection. Every error is an *Error: what goes wrong on the way is transient.
type Client struct {
	Node     spiffe.ID         // the caller
	Provider document.Provider // whom, and exactly the identity it must present
	Roots    *trust.Roots

	// Serial is the node's manifest's, for Artifact: a provider with an older
	// policy then returns that. Requests carry their own.
	Serial int64

	// Tag is that of the documents in force on the node, for Artifact and Watch; empty for none.
	Tag string

	// Revocations is the number of the revocation list in force on the node, zero for none.
	Revocations int64

	// SVID is the node's certificate; nil before enrolment.
	SVID *tls.Certificate

	// HostKey is the node's SSH host key, which proves the node at enrolment and in
	// every request.
	HostKey ssh.Signer

	// Admission is that of HostKey, where it is a device key; nil where the policy has it.
	Admission *trust.SignedAdmission

	// Dial connects to an address of the provider as it is written; nil for TCP, to each
	// address that it resolves to.
	Dial dialer

	// Others answer as well as Provider does: where that is silent, they are tried beside it.
	Others []document.Provider

	// Reached receives which of them each connection leads to; may be nil.
	Reached func(spiffe.ID)

	// Patience bounds a handshake; zero for 45 seconds.
	Patience time.Duration

	// Timeout bounds one call from when there is a connection; zero for 30 seconds.
	Timeout time.Duration
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Do sends a request and returns its answer, over a connection of its own.
func (c *Client) Do(ctx context.Context, path string, r Request) (Answer, error) {
	p := c.Calls()
	defer p.Close()
	return p.Do(ctx, path, r)
}

// Artifact fetches the documents of this node, over a connection of its own.
func (c *Client) Artifact(ctx context.Context) (Artifact, error) {
	p := c.Calls()
	defer p.Close()
	return p.Artifact(ctx)
}

// Report sends what the node reports of itself, over a connection of its own.
func (c *Client) Report(ctx context.Context, report []byte) (Reported, error) {
	p := c.Calls()
	defer p.Close()
	return p.Report(ctx, report)
}

// Enrol requests the node's own SVID without having one, over a connection of its own.
func (c *Client) Enrol(ctx context.Context, r Request) (Answer, error) {
	p := c.Calls()
	defer p.Close()
	return p.Enrol(ctx, r)
}

// timeout is that of a Client without another.
const timeout = 30 * time.Second
