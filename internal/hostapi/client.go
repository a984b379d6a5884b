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

// Paths of the providers' endpoints.
const (
	PathNonce    = "/cert/nonce"
	PathReport   = "/config/report"
	PathArtifact = "/config/artifact/" // followed by the node's name and ?serial=, the serial of its manifest
	PathWatch    = "/config/watch"     // followed by ?from=, the revision of the last answer, and &serial=
)

// Path returns the path at which a host requests needs of a kind with POST.
func Path(kind string) string { return "/" + kind + "/request" }

// HTTP headers of the protocol. They contain the idempotency key of a request; the base64 device
// proof of a request without a body; the Tag of the documents that a node has, and the Tag of the
// documents that a provider returns (RFC 9110, section 13.1.2); and the revision from which a watch
// continues.
const (
	HeaderKey      = "Idempotency-Key"
	HeaderDevice   = "Device-Proof"
	HeaderHas      = "If-None-Match"
	HeaderTag      = "ETag"
	HeaderRevision = "Documents-Revision"

	// HeaderRevocations contains the number of the host's revocation list, or 0 for none. Providers
	// send no revocation list to a host that does not send the header, because its release does not
	// understand revocation lists.
	HeaderRevocations = "Revocations"
)

// Maximum lengths of requests and answers in bytes. The longest answer to a need is an escaped file
// of 1 MiB. The longest documents are a provider host's: 17 MB with 10,000 hosts.
const (
	MaxRequest  = 64 << 10
	MaxAnswer   = 8 << 20
	MaxArtifact = 32 << 20
	MaxReport   = 1 << 20
)

// Client sends requests to one provider on behalf of one node. Each call opens a TLS connection of
// its own, so the credentials are never older than the connection. Only the calls of a Calls share
// a connection. Every error is an *Error; errors of the network are transient.
type Client struct {
	Node     spiffe.ID         // the caller
	Provider document.Provider // provider to call, and the exact identity that it must present
	Roots    *trust.Roots

	// Serial is the serial of the node's manifest. Artifact sends it, and a provider with an older
	// policy then returns policy-behind. Other requests contain a serial of their own.
	Serial int64

	// Tag is the entity tag of the documents in force on the node. Artifact and Watch send it. It
	// is empty if the node has no documents.
	Tag string

	// Revocations is the number of the revocation list in force on the node, or zero if there is
	// none.
	Revocations int64

	// SVID is the certificate with which the node authenticates. It is nil before enrolment.
	SVID *tls.Certificate

	// HostKey is the node's SSH host key. The client signs with it at enrolment and on every later
	// connection.
	HostKey ssh.Signer

	// Admission is the admission of HostKey if HostKey is a device key. It is nil if the policy
	// contains the key.
	Admission *trust.SignedAdmission

	// Dial connects to one of the provider's addresses. If Dial is nil, the client resolves the
	// address and tries a TCP connection to each result.
	Dial dialer

	// Others are equivalent providers. The client tries them in parallel while Provider does not
	// answer.
	Others []document.Provider

	// Reached is called for each new connection with the ID of the provider. It may be nil.
	Reached func(spiffe.ID)

	// Patience is the time limit of a TLS handshake. Zero stands for one minute.
	Patience time.Duration

	// Timeout is the time limit of one call once it has a connection. Zero stands for 30 seconds.
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

// Report sends an encoded hostreport.Report of the node, over a connection of its own.
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
