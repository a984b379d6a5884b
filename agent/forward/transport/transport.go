// Package transport provides the connections between forwarders: QUIC, or TLS 1.3 over TCP where
// UDP does not pass, with an X.509-SVID on each side (package wire).
//
// Each side verifies the other's chain against the trust roots of the manifest, and the exact URI
// SAN of its leaf, in VerifyConnection, which TLS calls in every handshake. Session tickets and
// 0-RTT are disabled, because a resumed session would rely on an earlier verification.
package transport

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
)

// Parameters of both sides.
const (
	handshakeTimeout = 5 * time.Second
	quicIdleTimeout  = 15 * time.Second
	keepAlive        = time.Second // after a crash, the next process answers that the connection is gone
)

// packetSize is the initial size of packets on each path. It is the minimum that QUIC requires of a
// network (RFC 9000, section 14), and some tunnels pass no larger ones. Larger packets are sent
// after one has passed.
const packetSize = 1200

// MaxStreams is the maximum number of concurrent TCP connections and UDP sessions of a connection.
// Each uses 4 KiB before it is accepted.
const MaxStreams = 4096

// window is the number of bytes of all streams of a connection that may be unread. Each stream has
// a much smaller window of its own, so that unread streams do not use up the shared one and block
// the others. Package usage limits the total of all connections.
const window = 256 << 20

// Flush is the delay between the end of a connection's last stream and its own end. QUIC does not
// report whether the last bytes have arrived, and closing would discard them.
const Flush = 200 * time.Millisecond

// unrecognizedName is the TLS alert 112 (RFC 6066, section 3) as a QUIC error.
const unrecognizedName quic.TransportErrorCode = 0x100 + 112

// skew is the tolerated difference of clocks. The publishing side accepts new streams on a
// connection until this time after an SVID of the connection has expired. The caller's side stops
// using it at the time of expiry.
const skew = time.Minute

// Peer is the verified other side of a connection.
type Peer struct {
	ID    spiffe.ID
	Chain []*x509.Certificate // leaf first
	trust *trust.Roots        // roots against which Chain was verified
	side  x509.ExtKeyUsage    // usage that matches the peer's side
	at    time.Time
}

// TrustedBy reports whether t, with its revocation list, would have accepted the peer at the time
// when it connected.
func (p Peer) TrustedBy(t *trust.Roots) bool {
	if t.Equal(p.trust) {
		return t.Revocations().CheckChain(p.Chain, p.ID) == nil
	}
	_, err := t.Verify(p.Chain, p.at, p.side)
	return err == nil
}

// verify verifies the other side's certificates. On error, the returned peer has the ID that it
// claims.
func verify(t *trust.Roots, cs tls.ConnectionState, side x509.ExtKeyUsage) (Peer, error) {
	at := time.Now()
	id, err := t.Verify(cs.PeerCertificates, at, side)
	return Peer{ID: id, Chain: cs.PeerCertificates, trust: t, side: side, at: at}, err
}

// issuer returns the last certificate of the chain.
func (p Peer) issuer() *x509.Certificate { return p.Chain[len(p.Chain)-1] }

// Leaf returns the peer's own certificate.
func (p Peer) Leaf() *x509.Certificate { return p.Chain[0] }

// RefusedError means that the other forwarder refused.
type RefusedError struct {
	Code wire.Code
	Peer spiffe.ID // forwarder that refused
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s refused: %s", e.Peer, e.Code) }

// explain turns QUIC's errors into a *RefusedError if the peer gave a reason, as one of our codes
// or a TLS alert.
func explain(err error, peer spiffe.ID) error {
	var app *quic.ApplicationError
	if errors.As(err, &app) && app.Remote {
		return &RefusedError{wire.Code(app.ErrorCode), peer}
	}
	var stream *quic.StreamError
	if errors.As(err, &stream) && stream.Remote {
		return &RefusedError{wire.Code(stream.ErrorCode), peer}
	}
	var refused *quic.TransportError
	if errors.As(err, &refused) && refused.Remote && refused.ErrorCode == quic.ConnectionRefused {
		return &RefusedError{wire.Stopping, peer}
	}
	var tlsErr *quic.TransportError
	if errors.As(err, &tlsErr) && tlsErr.Remote && tlsErr.ErrorCode.IsCryptoError() {
		if tlsErr.ErrorCode == unrecognizedName {
			return &RefusedError{wire.NotPublished, peer}
		}
		return &RefusedError{wire.Untrusted, peer}
	}
	var alert *net.OpError
	if errors.As(err, &alert) && alert.Op == "remote error" { // from crypto/tls over TCP
		if alert.Err.Error() == tls.AlertError(unrecognizedName&0xff).Error() {
			return &RefusedError{wire.NotPublished, peer}
		}
		return &RefusedError{wire.Untrusted, peer}
	}
	return err
}

func quicConfig() *quic.Config {
	return &quic.Config{
		HandshakeIdleTimeout:  handshakeTimeout,
		MaxIdleTimeout:        quicIdleTimeout,
		KeepAlivePeriod:       keepAlive,
		MaxIncomingUniStreams: 1, // for checks
		EnableDatagrams:       true,
		InitialPacketSize:     packetSize,

		InitialConnectionReceiveWindow: window,
		MaxConnectionReceiveWindow:     window,
	}
}

// tlsConfig returns the configuration that both sides share.
func tlsConfig(alpn string, svid *trust.SVID, verify func(tls.ConnectionState) error) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{alpn},
		Certificates:           []tls.Certificate{svid.Cert},
		SessionTicketsDisabled: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			if cs.NegotiatedProtocol != alpn { // over TCP, none is negotiated if a side offers none
				return fmt.Errorf("protocol %q, want %q", cs.NegotiatedProtocol, alpn)
			}
			return verify(cs)
		},
		DynamicRecordSizingDisabled: true,
	}
}

type closer interface {
	CloseWithError(quic.ApplicationErrorCode, string) error
}

func closeWith(c closer, code wire.Code) {
	c.CloseWithError(quic.ApplicationErrorCode(code), code.String())
}

// Reset resets both directions of a stream and releases it.
func Reset(st wire.Stream, code wire.Code) {
	st.CancelRead(quic.StreamErrorCode(code))
	st.CancelWrite(quic.StreamErrorCode(code))
}
