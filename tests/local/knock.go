package local

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/spiffe"
)

// Knock connects to a forwarder with an SVID, and asks it to connect to a target over TCP. An
// attacker with a stolen SVID could do the same. If the target is reached, Knock returns nil, and
// otherwise the forwarder's refusal or another error.
func Knock(ctx context.Context, address string, target spiffe.ID, svid *tls.Certificate) error {
	return knock(ctx, address, wire.Preamble{Type: wire.TCP, Target: target}, svid)
}

// KnockFor is like Knock, but pretends to be an ingress: it tells the forwarder that the connection
// comes from a stranger with the addresses in origin.
func KnockFor(ctx context.Context, address string, target spiffe.ID, svid *tls.Certificate, origin wire.Origin) error {
	return knock(ctx, address, wire.Preamble{Type: wire.Entered, Target: target, Origin: origin}, svid)
}

func knock(ctx context.Context, address string, p wire.Preamble, svid *tls.Certificate) error {
	h, err := hold(ctx, address, p, svid)
	if err == nil {
		h.conn.CloseWithError(0, "")
	}
	return err
}

// Held is an open connection that a forwarder has accepted; see Hold.
type Held struct{ conn *quic.Conn }

// Ended waits until the forwarder closes the connection, or until the given duration has passed.
// Then it closes the connection itself and returns the current time.
func (h Held) Ended(within time.Duration) time.Time {
	select {
	case <-h.conn.Context().Done():
	case <-time.After(within):
	}
	h.conn.CloseWithError(0, "")
	return time.Now()
}

// Hold is like Knock, but returns the open connection.
func Hold(ctx context.Context, address string, target spiffe.ID, svid *tls.Certificate) (h Held, err error) {
	return hold(ctx, address, wire.Preamble{Type: wire.TCP, Target: target}, svid)
}

func hold(ctx context.Context, address string, p wire.Preamble, svid *tls.Certificate) (h Held, err error) {
	dialable, err := spiffe.Dial(p.Target)
	if err != nil {
		return h, err
	}
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	conn, err := quic.DialAddr(ctx, address, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{wire.ALPN}, ServerName: spiffe.SNI(dialable),
		Certificates: []tls.Certificate{*svid}, InsecureSkipVerify: true, // the test is about the caller's certificate
	}, &quic.Config{KeepAlivePeriod: time.Second})
	if err != nil {
		return h, err
	}
	defer func() {
		if err != nil {
			conn.CloseWithError(0, "")
		}
	}()
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return h, err
	}
	_ = stream.SetDeadline(time.Now().Add(Limit))
	if _, err := stream.Write(p.Append(nil)); err != nil {
		return h, err
	}
	_, err = stream.Read(make([]byte, 1))
	return Held{conn}, err
}
