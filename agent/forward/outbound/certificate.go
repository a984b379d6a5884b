package outbound

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/florete/florete/agent/forward/handover"
	"github.com/florete/florete/agent/forward/splice"
	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/internal/trust"
)

const (
	// proofTimeout is the time that a stranger has for its TLS handshake.
	proofTimeout = 10 * time.Second
	// alertTimeout is the time that a refused stranger has to read the alert.
	alertTimeout = time.Second
)

// asksCertificate reports whether callers from an address must prove an identity with a client
// certificate.
func (r *rules) asksCertificate(at listenerKey, from netip.Addr) bool {
	return slices.ContainsFunc(r.entries[at], func(e entry) bool { return !e.Caller.IsZero() && e.admits(from) })
}

// isFor reports whether a peer has proved the identity of the entry's callers.
func (e entry) isFor(peer *transport.Peer) bool {
	return peer != nil && !e.Caller.IsZero() && peer.ID == e.Caller
}

// trustedBy reports whether the given roots, with their revocation list, accept the stranger's
// certificate. It returns true for a stranger without a certificate.
func (k stranger) trustedBy(t *trust.Roots) bool {
	return k.peer == nil || t != nil && k.peer.TrustedBy(t)
}

// enterProven carries a connection of a stranger who must prove an identity with a client
// certificate. The TLS connection ends here, and its content is carried to the service.
func (s *Server) enterProven(ctx context.Context, tcp *net.TCPConn, at listenerKey, c connection, ends *handover.Ends) {
	local, err := s.prove(ctx, tcp, at, &c)
	if err != nil {
		c.as = c.rules.node
		s.refuse(c, &refusal{becauseBadProof, err.Error()})
		// Closing the connection with unread bytes would reset it and lose the alert.
		tcp.SetDeadline(time.Now().Add(alertTimeout))
		_ = tcp.CloseWrite()
		_, _ = io.CopyN(io.Discard, tcp, 64<<10)
		tcp.Close()
		return
	}
	if denied := s.admitStranger(&c, c.stranger); denied != nil {
		s.refuse(c, denied)
		reset(tcp)
		return
	}
	ends.Add(c.leave)
	begun := time.Now()
	ctx, end, ok := s.admit(ctx, c)
	if !ok {
		reset(tcp)
		return
	}
	ends.Add(end)
	counted := s.Metrics.Begin(telemetry.Out, c.target.ID(), c.port, c.as)
	ends.Add(counted.Done)
	st, err := s.request(ctx, c, nil)
	s.trace(c, st, begun, err)
	if err != nil {
		denied := explain(err)
		s.refuse(c, denied)
		if denied != nil {
			c.logged(counted, "", denied.reason)
		}
		reset(tcp)
		return
	}
	counted.Opened(time.Since(begun))
	ends.Add(st.Release)
	ends.Go(func() {
		err := splice.Terminate(ctx, splice.Terminated{
			Local: local, Stream: st.Stream, FromLocal: counted.Sent, ToLocal: counted.Received, Read: &st.Usage().Read, Limits: c.limits,
		})
		c.logged(counted, st.Transport(), splice.Reason(err, "caller", "service"))
	})
}

// prove performs the TLS handshake with a stranger and sets the stranger of the connection. The
// stranger must have the certificate of a caller for whom the listener has an entry.
func (s *Server) prove(ctx context.Context, tcp *net.TCPConn, at listenerKey, c *connection) (*tls.Conn, error) {
	c.stranger = stranger{at: at, from: c.origin.From.Addr()}
	set := s.Identities()
	svid := set.SVID(c.rules.node)
	if svid == nil || !svid.Valid(time.Now()) {
		return nil, fmt.Errorf("no valid SVID of %s", c.rules.node)
	}
	var peer transport.Peer
	local := splice.TLSServer(tcp, &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{svid.Cert},
		SessionTicketsDisabled: true,
		ClientAuth:             tls.RequireAnyClientCert,
		VerifyConnection: func(cs tls.ConnectionState) (err error) {
			if peer, err = transport.VerifyClient(set.Trust, cs); err != nil {
				if !peer.ID.IsZero() {
					err = fmt.Errorf("claims to be %s: %w", peer.ID, err)
				}
				return err
			}
			if !slices.ContainsFunc(c.rules.entries[at], func(e entry) bool { return e.admits(c.stranger.from) && e.isFor(&peer) }) {
				return fmt.Errorf("%s is none of the callers of this port", peer.ID)
			}
			return nil
		},
	})
	tcp.SetDeadline(time.Now().Add(proofTimeout))
	stop := context.AfterFunc(ctx, func() { tcp.SetDeadline(time.Unix(1, 0)) })
	err := local.Handshake()
	if !stop() {
		err = errors.Join(err, ctx.Err())
	}
	tcp.SetDeadline(time.Time{})
	if err != nil {
		return nil, err
	}
	c.stranger.peer = &peer
	return local, nil
}
