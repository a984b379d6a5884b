package hostapi

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/strictjson"
)

// maxHeader is the maximum length in bytes of the header of an answer.
const maxHeader = 16 << 10

// Time limits of a connection. A client waits connectTimeout for an address that does not answer.
// It tries several addresses in parallel, each a little later than the one before. A provider with
// many hosts serves them in order. After it has accepted a connection, the handshake may therefore
// take handshakeTimeout, or Client.Patience if that is set.
const (
	connectTimeout   = 2 * time.Second
	handshakeTimeout = time.Minute
)

// session is a verified connection to a provider. All requests of a session use this connection,
// because proofs are bound to it. http.Transport cannot be used here: it may replace a connection
// whose writer has not been scheduled for a while.
type session struct {
	client  *Client
	address string // address of the provider, as in the manifest
	conn    *tls.Conn
	limit   *io.LimitedReader // of conn
	answers *bufio.Reader     // of limit
	writes  *bufio.Writer     // to conn
	proof   string            // device proof, if the client has an SSH host key

	enrolled bool // true if the host enrolled on this connection, so without a client certificate
	spent    bool // true if no further request may be sent
}

// connect opens a session with the provider. If the client has an SVID and an SSH host key, connect
// also makes the device proof.
func (c *Client) connect(ctx context.Context, svid *tls.Certificate) (*session, error) {
	c, w, err := c.hedge(ctx, svid)
	if err != nil {
		return nil, err
	}
	if c.Reached != nil {
		c.Reached(c.Provider.ID)
	}
	limit := &io.LimitedReader{R: w.conn}
	s := &session{client: c, address: w.address, conn: w.conn, limit: limit, answers: bufio.NewReader(limit), writes: bufio.NewWriter(w.conn)}
	if svid == nil || c.HostKey == nil {
		return s, nil
	}
	if s.proof, err = s.proveDevice(); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

// way is a verified connection to a provider, with the address to which the client connected.
type way struct {
	address string
	conn    *tls.Conn
}

// dial connects to the first address at which the provider proves its identity. If another machine
// at one of the addresses refuses the client, dial still waits for the addresses that have not
// answered.
func (c *Client) dial(ctx context.Context, svid *tls.Certificate) (way, error) {
	var silent atomic.Bool
	failed := func(address string, err error) (way, error) {
		var refused *Error
		if !errors.As(err, &refused) {
			silent.Store(true)
		}
		return way{}, fmt.Errorf("provider %s at %s: %w", c.Provider.ID.Short(), address, err)
	}
	handshake := func(ctx context.Context, address string, dial dialer, at string) (way, error) {
		conn, err := c.handshake(ctx, svid, dial, at)
		if err != nil {
			return failed(address, err)
		}
		return way{address, conn}, nil
	}
	discard := func(w way) { w.conn.NetConn().Close() }
	w, err := conns.Race(ctx, c.Provider.Addresses, func(ctx context.Context, address string) (way, error) {
		if c.Dial != nil {
			return handshake(ctx, address, c.Dial, address)
		}
		found, err := conns.Resolve(ctx, address)
		if err != nil {
			return failed(address, err)
		}
		return conns.Race(ctx, found, func(ctx context.Context, at netip.AddrPort) (way, error) {
			return handshake(ctx, address, new(net.Dialer).DialContext, at.String())
		}, discard)
	}, discard)
	if err != nil && silent.Load() {
		return way{}, Errorf(CodeUnavailable, "%v", err)
	}
	if err != nil {
		return way{}, AsError(err)
	}
	return w, nil
}

// handshake connects to one address of the provider, and performs the TLS handshake. It verifies
// the provider in VerifyConnection, which TLS calls in every handshake. TLS sessions are never
// resumed (RFC 8446, section 2.2), because a resumed session would accept a certificate that has
// expired since.
func (c *Client) handshake(ctx context.Context, svid *tls.Certificate, dial dialer, at string) (*tls.Conn, error) {
	connecting, connected := context.WithTimeout(ctx, connectTimeout)
	raw, err := dial(connecting, "tcp", at)
	connected()
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{"http/1.1"},
		SessionTicketsDisabled: true,
		InsecureSkipVerify:     true, // host names are not checked; Peer verifies the SVID
		VerifyConnection: func(cs tls.ConnectionState) error {
			id, err := Peer(cs.PeerCertificates, c.Roots, x509.ExtKeyUsageServerAuth)
			if e := AsError(err); err != nil && (e.Code == CodeUntrusted.Name || e.Code == CodeRevoked.Name) {
				return Errorf(CodeUntrustedTransient, "%s", e.Message)
			}
			if err == nil && id != c.Provider.ID {
				return Errorf(CodeUntrustedTransient, "the provider presents %s, want %s: check its address", id, c.Provider.ID)
			}
			return err
		},
	}
	if svid != nil {
		config.Certificates = []tls.Certificate{*svid}
	}
	ctx, cancel := context.WithTimeout(ctx, cmp.Or(c.Patience, handshakeTimeout))
	defer cancel()
	first := &firstBytes{Conn: raw}
	conn := tls.Client(first, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, cmp.Or(first.turnedAway(err), err)
	}
	first.end()
	return conn, nil
}

func (s *session) close() {
	// Messages have lengths, so nothing is lost without close_notify, and sending it could block on
	// a provider that does not read.
	s.conn.NetConn().Close()
}

// binding returns the channel binding of the session's connection.
func (s *session) binding() ([]byte, error) {
	state := s.conn.ConnectionState()
	b, err := ChannelBinding(&state)
	if err != nil {
		return nil, AsError(err)
	}
	return b, nil
}

// proveDevice makes the device proof: it signs the session's connection with the SSH host key.
func (s *session) proveDevice() (string, error) {
	binding, err := s.binding()
	if err != nil {
		return "", err
	}
	proof, err := (DeviceStatement{s.client.Node, s.client.Provider.ID, binding}).Sign(s.client.HostKey)
	if err != nil {
		return "", unsigned("connection to "+s.client.Provider.ID.Short(), err)
	}
	return proof, nil
}

// enrol requests the node's first SVID. It adds a proof by the SSH host key to the request. The
// argument csr is the certificate signing request in DER.
func (s *session) enrol(ctx context.Context, r Request, csr []byte) (Answer, error) {
	var nonce Nonce
	if err := s.call(ctx, http.MethodPost, PathNonce, http.Header{}, nil, &nonce); err != nil {
		return Answer{}, err
	}
	binding, err := s.binding()
	if err != nil {
		return Answer{}, err
	}
	c := s.client
	r.Proof, err = Statement{Node: c.Node, Provider: c.Provider.ID, Nonce: nonce.Nonce, CSR: csr, Binding: binding}.Sign(c.HostKey)
	if err != nil {
		return Answer{}, unsigned("need "+r.Need, err)
	}
	r.Proof.Admission = c.Admission
	s.enrolled = true
	return s.request(ctx, Path("cert"), r)
}

// refuses reports whether the error err is due to the connection on which the host enrolled. A new
// connection with the SVID may then succeed. The provider has closed the connection, or runs a
// release that does not accept a certificate on the connection on which it was issued.
func (s *session) refuses(err error) bool { return s.spent || AsError(err).Code == CodeUntrusted.Name }

// device returns an HTTP header with the device proof, for requests that have no body.
func (s *session) device() http.Header {
	return http.Header{HeaderDevice: {base64.StdEncoding.EncodeToString([]byte(s.proof))}}
}

// request sends a request for a need, with its idempotency key, and returns the answer.
func (s *session) request(ctx context.Context, path string, r Request) (Answer, error) {
	key := r.IdempotencyKey
	if key == "" {
		var err error
		if key, err = r.Key(s.client.Node); err != nil {
			return Answer{}, Errorf(CodeMalformed, "%v", err)
		}
	}
	b, err := json.Marshal(r)
	if err != nil {
		return Answer{}, Errorf(CodeMalformed, "need %s: %v", r.Need, err)
	}
	header := http.Header{HeaderKey: {key}, "Content-Type": {"application/json"}}
	var a Answer
	if err := s.call(ctx, http.MethodPost, path, header, bytes.NewReader(b), &a); err != nil {
		return Answer{}, err
	}
	if len(a.Values) == 0 {
		return Answer{}, Errorf(CodeUnavailable, "need %s: %s answered with no values", r.Need, s.address)
	}
	return a, nil
}

// exchange sends an HTTP request and reads the answer. The provider may answer before it has read
// the whole request. The argument most is the maximum length of the answer's body; exchange reads
// up to one byte more. If the request's context ends, exchange closes the connection.
func (s *session) exchange(req *http.Request, most int64) (*http.Response, []byte, error) {
	unwatch := context.AfterFunc(req.Context(), func() { s.conn.NetConn().Close() })
	unsent := req.Write(s.writes)
	if unsent == nil {
		unsent = s.writes.Flush()
	}
	s.limit.N = maxHeader
	resp, err := http.ReadResponse(s.answers, req)
	var b []byte
	if err == nil {
		s.limit.N = math.MaxInt64
		b, err = io.ReadAll(io.LimitReader(resp.Body, most+1))
	}
	ended := !unwatch()
	s.spent = err != nil || unsent != nil || ended || resp.Close || int64(len(b)) > most || s.answers.Buffered() > 0
	if err != nil {
		err = cmp.Or(req.Context().Err(), unsent, err)
	}
	return resp, b, err
}

// call sends an HTTP request and decodes the JSON in the response into answer.
func (s *session) call(ctx context.Context, method, path string, header http.Header, body io.Reader, answer any) error {
	req, err := http.NewRequestWithContext(ctx, method, "https://"+s.address+path, body)
	if err != nil {
		return AsError(err)
	}
	req.Header = header
	header.Set(document.HeaderFormat, document.NewestFormat.String())
	header.Set(HeaderRevocations, strconv.FormatInt(s.client.Revocations, 10))
	if s.client.Grants != "" {
		header.Set(HeaderGrants, s.client.Grants)
	}
	most := MaxAnswer
	if _, ok := answer.(*Artifact); ok {
		most = MaxArtifact
	}
	resp, b, err := s.exchange(req, int64(most))
	if err != nil {
		return AsError(fmt.Errorf("%s %s at %s: %w", method, path, s.address, err))
	}
	odd := func(why any) error {
		if f, err := document.ParseFormat(resp.Header.Get(document.HeaderFormat)); err == nil && f.Newer(document.NewestFormat) {
			return Errorf(CodeNewerFormat, "%s %s: %s answered in a newer format than %s, %v: upgrade this host's programs",
				method, path, s.address, document.NewestFormat, why)
		}
		return Errorf(CodeUnavailable, "%s %s: %s answered with status %d and what is no answer: %v",
			method, path, s.address, resp.StatusCode, why)
	}
	artifact, conditional := answer.(*Artifact)
	if conditional {
		artifact.Revision, _ = strconv.ParseInt(resp.Header.Get(HeaderRevision), 10, 64)
	}
	switch {
	case resp.StatusCode == http.StatusNotModified && conditional && header.Get(HeaderHas) != "":
		artifact.NotModified, artifact.Has = true, header.Get(HeaderHas)
		return nil
	case len(b) > most:
		return odd(fmt.Sprintf("longer than %d bytes", most))
	case resp.StatusCode == http.StatusOK:
		if err := strictjson.Decode(b, answer); err != nil {
			return odd(err)
		}
		return nil
	default:
		e, err := parseError(b)
		if err != nil {
			return odd(err)
		}
		if after, _ := strconv.Atoi(resp.Header.Get("Retry-After")); after > e.RetryAfter {
			e.RetryAfter = min(after, maxRetryAfter)
		}
		return e
	}
}
