package api

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strconv"
	"sync/atomic"
	"time"

	"florete"
)

// session is one verified connection to a provider.
type session struct {
	client    *Client
	ctx       context.Context
	cancel    context.CancelFunc
	conn      *tls.Conn
	transport *http.Transport
}

func (c *Client) connect(ctx context.Context, svid *tls.Certificate) (*session, error) {
	timeout := c.Timeout
	if timeout == 0 {
		timeout = 30 * time.Second
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	conn, err := c.handshake(ctx, svid)
	if err != nil {
		cancel()
		return nil, AsError(fmt.Errorf("provider %s at %s: %w", c.Provider.ID.Short(), c.Provider.Address, err))
	}
	var used atomic.Bool
	return &session{
		client: c, ctx: ctx, cancel: cancel, conn: conn,
		transport: &http.Transport{
			MaxResponseHeaderBytes: 16 << 10,
			DialTLSContext: func(context.Context, string, string) (net.Conn, error) {
				if used.Swap(true) {
					return nil, fmt.Errorf("the provider closed the connection")
				}
				return conn, nil
			},
		},
	}, nil
}

// handshake verifies the provider in VerifyConnection, which runs on every
// handshake, and never resumes a session (RFC 8446 section 2.2): a resumed one
// would keep a certificate that has since expired.
func (c *Client) handshake(ctx context.Context, svid *tls.Certificate) (*tls.Conn, error) {
	dial := c.Dial
	if dial == nil {
		dial = new(net.Dialer).DialContext
	}
	raw, err := dial(ctx, "tcp", c.Provider.Address)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{"http/1.1"},
		SessionTicketsDisabled: true,
		InsecureSkipVerify:     true, // by host name; Peer verifies the SVID
		VerifyConnection: func(cs tls.ConnectionState) error {
			id, err := Peer(cs.PeerCertificates, c.Roots)
			if err != nil {
				return err
			}
			if id != c.Provider.ID {
				return Errorf(Denied, CodeUntrusted, "the provider presents %s, want %s: check its address", id, c.Provider.ID)
			}
			return nil
		},
	}
	if svid != nil {
		config.Certificates = []tls.Certificate{*svid}
	}
	conn := tls.Client(raw, config)
	if err := conn.HandshakeContext(ctx); err != nil {
		raw.Close()
		return nil, err
	}
	return conn, nil
}

func (s *session) close() {
	s.cancel()
	s.transport.CloseIdleConnections()
	// Messages have lengths, so nothing is lost without TLS's goodbye, which could
	// wait for a provider that does not read.
	s.conn.NetConn().Close()
}

// ask sends a request with its idempotency key.
func (s *session) ask(path string, r Request) (Answer, error) {
	var a Answer
	if err := s.call(http.MethodPost, path, &r, &a); err != nil {
		return Answer{}, err
	}
	if len(a.Values) == 0 {
		return Answer{}, Errorf(Transient, CodeUnavailable, "need %s: %s answered with no values", r.Need, s.client.Provider.Address)
	}
	return a, nil
}

// call makes one exchange and decodes what comes back into answer.
func (s *session) call(method, path string, r *Request, answer any) error {
	var body io.Reader
	header := http.Header{}
	if r != nil {
		key, err := r.Key(s.client.Node)
		if err != nil {
			return Errorf(Invalid, CodeMalformed, "%v", err)
		}
		b, err := json.Marshal(r)
		if err != nil {
			return Errorf(Invalid, CodeMalformed, "need %s: %v", r.Need, err)
		}
		header.Set(HeaderKey, key)
		header.Set("Content-Type", "application/json")
		body = bytes.NewReader(b)
	}
	req, err := http.NewRequestWithContext(s.ctx, method, "https://"+s.client.Provider.Address+path, body)
	if err != nil {
		return AsError(err)
	}
	req.Header = header
	resp, err := s.transport.RoundTrip(req)
	if err != nil {
		return AsError(fmt.Errorf("%s %s at %s: %w", method, path, s.client.Provider.Address, err))
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, MaxAnswer+1))
	if err != nil {
		return AsError(fmt.Errorf("%s %s at %s: %w", method, path, s.client.Provider.Address, err))
	}
	odd := func(why any) error {
		return Errorf(Transient, CodeUnavailable, "%s %s: %s answered with status %d and what is no answer: %v",
			method, path, s.client.Provider.Address, resp.StatusCode, why)
	}
	switch {
	case len(b) > MaxAnswer:
		return odd(fmt.Sprintf("longer than %d bytes", MaxAnswer))
	case resp.StatusCode == http.StatusOK:
		if err := florete.Decode(b, answer); err != nil {
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
