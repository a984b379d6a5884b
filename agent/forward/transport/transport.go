// Package transport provides the connections between the forwarders of different hosts. A
// connection uses QUIC, or TLS 1.3 over TCP where UDP does not pass, and has an X.509-SVID on each
// side. Package wire defines what is sent on it.
//
// TLS calls VerifyConnection in every handshake. There, each side verifies the other's certificate
// chain against the trust roots of the manifest, and the exact URI SAN of the leaf certificate.
// Session tickets and 0-RTT are disabled, because a resumed session would rely on an earlier
// verification.
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

// Parameters that both sides of a connection use.
const (
	handshakeTimeout = 5 * time.Second
	quicIdleTimeout  = 15 * time.Second
	keepAlive        = time.Second // after a crash, the restarted peer answers the next keep-alive with a reset
)

// packetSize is the initial size in bytes of packets on each path. It is the minimum that QUIC
// requires of a network (RFC 9000, section 14), and some tunnels pass no larger packets. Packets
// grow after a larger one has passed.
const packetSize = 1200

// MaxStreams is the maximum number of concurrent streams of a connection, each of which is a TCP
// connection or a UDP session. A stream uses 4 KiB before it is accepted.
const MaxStreams = 4096

// window is the number of bytes that may be unread on all streams of a connection together. Each
// stream also has a much smaller window, so that unread streams do not use up the shared window and
// block the others. Package usage limits the total of all connections.
const window = 256 << 20

// Flush is the delay between the end of the last stream of a connection and closing the connection.
// QUIC does not report whether the last bytes have arrived, and closing would discard them.
const Flush = 200 * time.Millisecond

// unrecognizedName is the TLS alert unrecognized_name (112; RFC 6066, section 3) as a QUIC error. A
// forwarder sends it if a caller connects to a target that the forwarder does not publish.
const unrecognizedName quic.TransportErrorCode = 0x100 + 112

// skew is the tolerated difference of clocks between two hosts. The caller's side stops using a
// connection when an SVID of the connection expires. The publishing side still accepts new streams
// for this time after the expiry.
const skew = time.Minute

// Peer is the program at the other side of a connection, with the identity that the TLS handshake
// has verified.
type Peer struct {
	ID    spiffe.ID
	Chain []*x509.Certificate // leaf first
	trust *trust.Roots        // trust roots that verified Chain
	side  x509.ExtKeyUsage    // extended key usage of the peer's side: client or server
	at    time.Time
}

// TrustedBy reports whether the given roots, with their revocation list, would have accepted the
// peer at the time when it connected. It finds the connections that a change of the roots forbids.
func (p Peer) TrustedBy(t *trust.Roots) bool {
	if t.Equal(p.trust) {
		return t.Revocations().CheckChain(p.Chain, p.ID) == nil
	}
	_, err := t.Verify(p.Chain, p.at, p.side)
	return err == nil
}

// verify verifies the other side's certificates against the given roots. If they are not valid, the
// returned peer has the ID that they claim.
func verify(t *trust.Roots, cs tls.ConnectionState, side x509.ExtKeyUsage) (Peer, error) {
	at := time.Now()
	id, err := t.Verify(cs.PeerCertificates, at, side)
	return Peer{ID: id, Chain: cs.PeerCertificates, trust: t, side: side, at: at}, err
}

// VerifyClient verifies the certificates that a client has presented in a TLS handshake. If they are
// not valid, the returned peer has the ID that they claim.
func VerifyClient(t *trust.Roots, cs tls.ConnectionState) (Peer, error) {
	return verify(t, cs, x509.ExtKeyUsageClientAuth)
}

// issuer returns the last certificate of the peer's chain.
func (p Peer) issuer() *x509.Certificate { return p.Chain[len(p.Chain)-1] }

// Leaf returns the certificate of the peer itself.
func (p Peer) Leaf() *x509.Certificate { return p.Chain[0] }

// RefusedError reports that the other forwarder refused a connection or a stream.
type RefusedError struct {
	Code wire.Code
	Peer spiffe.ID // forwarder that refused
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s refused: %s", e.Peer, e.Code) }

// explain replaces an error by a *RefusedError, if the peer gave a reason for the error. The reason
// is a wire.Code or a TLS alert. explain returns other errors unchanged.
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

// tlsConfig returns the part of the TLS configuration that both sides share. The given function
// verifies the other side's certificates.
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

// Reset aborts both directions of a stream, and sends the code to the other side as the reason.
func Reset(st wire.Stream, code wire.Code) {
	st.CancelRead(quic.StreamErrorCode(code))
	st.CancelWrite(quic.StreamErrorCode(code))
}
