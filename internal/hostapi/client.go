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

// Paths of endpoints.
const (
	PathNonce    = "/cert/nonce"
	PathReport   = "/config/report"
	PathArtifact = "/config/artifact/" // followed by the node's name and ?serial=, the serial of its manifest
	PathWatch    = "/config/watch"     // followed by ?from=, the revision of the last answer, and &serial=
)

// Path returns the path at which needs of a kind are requested with POST.
func Path(kind string) string { return "/" + kind + "/request" }

// HTTP headers: the idempotency key of a request; the base64 device proof of a request without a
// body; the Tag of the documents that a node has, and of those that a provider returns (RFC 9110,
// section 13.1.2); and the revision from which a watch continues.
const (
	HeaderKey      = "Idempotency-Key"
	HeaderDevice   = "Device-Proof"
	HeaderHas      = "If-None-Match"
	HeaderTag      = "ETag"
	HeaderRevision = "Documents-Revision"

	// HeaderRevocations contains the number of the host's revocation list, 0 for none. A host that
	// does not send the header does not understand revocation lists and is not sent one.
	HeaderRevocations = "Revocations"
)

// Maximum lengths of requests and answers in bytes. The longest answer to a need is an escaped file
// of 1 MiB. The longest documents are those of a provider host: 17 MB with 10,000 hosts.
const (
	MaxRequest  = 64 << 10
	MaxAnswer   = 8 << 20
	MaxArtifact = 32 << 20
	MaxReport   = 1 << 20
)

// Client sends requests to one provider on behalf of one node. Each call has a TLS connection of
// its own, except that those of a Calls share one: credentials are never older than the connection.
// Every error is an *Error; failures on the way are transient.
type Client struct {
	Node     spiffe.ID         // the caller
	Provider document.Provider // provider to call, and the exact identity that it must present
	Roots    *trust.Roots

	// Serial is the serial of the node's manifest, sent by Artifact. A provider with an older
	// policy then returns policy-behind. Other requests contain their own serial.
	Serial int64

	// Tag is the entity tag of the documents in force on the node, for Artifact and Watch; empty
	// for none.
	Tag string

	// Revocations is the number of the revocation list in force on the node, zero for none.
	Revocations int64

	// SVID is the node's certificate; nil before enrolment.
	SVID *tls.Certificate

	// HostKey is the node's SSH host key. It proves the node at enrolment and on every later
	// connection.
	HostKey ssh.Signer

	// Admission is the admission of HostKey if that is a device key; nil if the policy contains it.
	Admission *trust.SignedAdmission

	// Dial connects to one of the provider's addresses. If it is nil, the address is resolved and
	// TCP connections are tried to each result.
	Dial dialer

	// Others are equivalent providers. They are tried in parallel while Provider is silent.
	Others []document.Provider

	// Reached is called with the ID of the provider to which each connection was made; may be nil.
	Reached func(spiffe.ID)

	// Patience bounds a TLS handshake; zero for one minute.
	Patience time.Duration

	// Timeout bounds one call once there is a connection; zero for 30 seconds.
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

// Enrol requests the first SVID of the node, over a connection of its own.
func (c *Client) Enrol(ctx context.Context, r Request) (Answer, error) {
	p := c.Calls()
	defer p.Close()
	return p.Enrol(ctx, r)
}

// timeout is the default of Client.Timeout.
const timeout = 30 * time.Second
