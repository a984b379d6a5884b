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

// Defaults of both sides.
const (
	handshakeTimeout = 5 * time.Second
	quicIdleTimeout  = 15 * time.Second
	keepAlive        = time.Second // after a crash, the next process answers that the connection is gone
)

// packetSize is that of the first packets, on each path: what QUIC needs of a network (RFC 9000
// section 14), and some tunnels let no more through. Larger ones are sent once one has passed.
const packetSize = 1200

// MaxStreams is how many TCP connections and UDP sessions a connection carries at a time.
// Each takes 4 KiB before anybody has looked at it.
const MaxStreams = 4096

// window is how many bytes of all streams of a connection may wait for those that
// they are for. Each stream has its own, much smaller one: those that nobody reads
// must not use up what all share, or none of the others goes on. Package usage looks
// after what all connections hold together.
const window = 256 << 20

// Flush is how long to wait between a last stream's end and a connection's: QUIC
// does not report whether the last bytes have arrived, and closing takes them back.
const Flush = 200 * time.Millisecond

// unrecognizedName is the TLS alert 112 (RFC 6066 section 3) as QUIC carries it.
const unrecognizedName quic.TransportErrorCode = 0x100 + 112

// skew is what clocks may differ: a connection takes no new
// streams on the publishing side this long after an SVID of it has expired. The
// caller's side stops using it at the very moment.
const skew = time.Minute

// Peer is the verified other side of a connection.
type Peer struct {
	ID    spiffe.ID
	Chain []*x509.Certificate // leaf first
	trust *trust.Roots        // that Chain was verified against
	side  x509.ExtKeyUsage    // that the peer is on
	at    time.Time
}

// TrustedBy reports whether t, with its revocation list, would have let the peer in when it
// connected.
func (p Peer) TrustedBy(t *trust.Roots) bool {
	if t.Equal(p.trust) {
		return t.Revocations().CheckChain(p.Chain, p.ID) == nil
	}
	_, err := t.Verify(p.Chain, p.at, p.side)
	return err == nil
}

// verify checks the other side's certificates. With an error, the peer's ID is
// what it claims.
func verify(t *trust.Roots, cs tls.ConnectionState, side x509.ExtKeyUsage) (Peer, error) {
	at := time.Now()
	id, err := t.Verify(cs.PeerCertificates, at, side)
	return Peer{ID: id, Chain: cs.PeerCertificates, trust: t, side: side, at: at}, err
}

// issuer is the end of its chain.
func (p Peer) issuer() *x509.Certificate { return p.Chain[len(p.Chain)-1] }

// Leaf is the peer's own certificate.
func (p Peer) Leaf() *x509.Certificate { return p.Chain[0] }

// RefusedError says that the other forwarder refused, and how.
type RefusedError struct {
	Code wire.Code
	Peer spiffe.ID // who refused
}

func (e *RefusedError) Error() string { return fmt.Sprintf("%s refused: %s", e.Peer, e.Code) }

// explain turns QUIC's errors into a RefusedError where the peer gave the reason, in a
// code of ours or in a TLS alert.
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
	if errors.As(err, &alert) && alert.Op == "remote error" { // of crypto/tls over TCP
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
		MaxIncomingUniStreams: 1, // of checks
		EnableDatagrams:       true,
		InitialPacketSize:     packetSize,

		InitialConnectionReceiveWindow: window,
		MaxConnectionReceiveWindow:     window,
	}
}

// tlsConfig is what both sides share.
func tlsConfig(alpn string, svid *trust.SVID, verify func(tls.ConnectionState) error) *tls.Config {
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		NextProtos:             []string{alpn},
		Certificates:           []tls.Certificate{svid.Cert},
		SessionTicketsDisabled: true,
		VerifyConnection: func(cs tls.ConnectionState) error {
			if cs.NegotiatedProtocol != alpn { // none is, over TCP, when a side offers none
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

// Reset ends both directions of a stream and gives it back.
func Reset(st wire.Stream, code wire.Code) {
	st.CancelRead(quic.StreamErrorCode(code))
	st.CancelWrite(quic.StreamErrorCode(code))
}
