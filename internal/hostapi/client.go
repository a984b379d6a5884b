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

// Paths of the endpoints that providers offer to hosts.
const (
	PathNonce    = "/cert/nonce"
	PathReport   = "/config/report"
	PathArtifact = "/config/artifact/" // followed by the node's name and ?serial=, the serial of its manifest
	PathWatch    = "/config/watch"     // followed by ?from=, the revision of the last answer, and &serial=
)

// Path returns the URL path to which hosts send requests for needs of a kind, with POST.
func Path(kind string) string { return "/" + kind + "/request" }

// HTTP headers of the protocol:
//
//   - the idempotency key of a request
//   - the device proof (base64) of a request without a body
//   - the Tag of the documents that a node has, and the Tag of the documents that a provider
//     returns (RFC 9110, section 13.1.2)
//   - the revision from which a watch continues
const (
	HeaderKey      = "Idempotency-Key"
	HeaderDevice   = "Device-Proof"
	HeaderHas      = "If-None-Match"
	HeaderTag      = "ETag"
	HeaderRevision = "Documents-Revision"

	// HeaderRevocations contains the number of the revocation list that the host has, or 0 if it
	// has none. A host whose release does not understand revocation lists omits the header.
	// Providers then send it no revocation list.
	HeaderRevocations = "Revocations"

	// HeaderGrants contains the Tag of the access grants that the host received last, or NoGrants.
	// A host whose manifest names no role that can be requested omits the header. Providers then
	// send it no grants.
	HeaderGrants = "Access-Grants"
)

// Maximum lengths of requests and answers in bytes. The longest answer to a request for a need is
// an escaped file of 1 MiB. The longest documents are those of a provider host, 17 MB in a cluster
// of 10,000 hosts.
const (
	MaxRequest  = 64 << 10
	MaxAnswer   = 8 << 20
	MaxArtifact = 32 << 20
	MaxReport   = 1 << 20
)

// Client sends requests to a provider on behalf of one node. Each call opens its own TLS connection
// with the present credentials. To send several calls over one connection, use Calls. All errors
// are of type *Error, and errors of the network are transient.
type Client struct {
	Node     spiffe.ID         // node that sends the requests
	Provider document.Provider // provider to call, with the exact identity that it must present
	Roots    *trust.Roots

	// Serial is the serial of the node's manifest. Artifact sends it, and a provider whose policy
	// is older returns the error policy-behind. Other requests contain their own serial.
	Serial int64

	// Tag is the entity tag of the documents that are in force on the node. Artifact and Watch send
	// it. It is empty if the node has no documents.
	Tag string

	// Revocations is the number of the revocation list that is in force on the node. It is zero if
	// the node has no revocation list.
	Revocations int64

	// Grants is the Tag of the access grants that the node received last, or NoGrants. It is empty
	// if the node has no use for grants.
	Grants string

	// SVID is the certificate with which the node authenticates. It is nil before enrolment.
	SVID *tls.Certificate

	// HostKey is the node's SSH host key. The client signs with it at enrolment and on every later
	// connection.
	HostKey ssh.Signer

	// Admission is the operator's admission of HostKey, if HostKey is a device key. It is nil if
	// the policy contains the key.
	Admission *trust.SignedAdmission

	// Dial opens a connection to one of the provider's addresses. If Dial is nil, the client
	// resolves the address and tries to open a TCP connection to each result.
	Dial dialer

	// Others lists equivalent providers. The client tries them in parallel if Provider does not
	// answer.
	Others []document.Provider

	// Reached is called for each new connection, with the ID of the provider. It may be nil.
	Reached func(spiffe.ID)

	// Patience is the time limit of a TLS handshake. Zero stands for one minute.
	Patience time.Duration

	// Timeout is the time limit of a call, counted from the time when its connection is open. Zero
	// stands for 30 seconds.
	Timeout time.Duration
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// Do sends a request to a path of the provider over its own connection, and returns the answer.
func (c *Client) Do(ctx context.Context, path string, r Request) (Answer, error) {
	p := c.Calls()
	defer p.Close()
	return p.Do(ctx, path, r)
}

// Artifact fetches the documents of the client's node, over its own connection.
func (c *Client) Artifact(ctx context.Context) (Artifact, error) {
	p := c.Calls()
	defer p.Close()
	return p.Artifact(ctx)
}

// Report sends an encoded hostreport.Report of the client's node to the provider over its own
// connection.
func (c *Client) Report(ctx context.Context, report []byte) (Reported, error) {
	p := c.Calls()
	defer p.Close()
	return p.Report(ctx, report)
}

// Enrol requests the first SVID of the client's node over its own connection. See Calls.Enrol.
func (c *Client) Enrol(ctx context.Context, r Request) (Answer, error) {
	p := c.Calls()
	defer p.Close()
	return p.Enrol(ctx, r)
}

// timeout is the default of Client.Timeout.
const timeout = 30 * time.Second
