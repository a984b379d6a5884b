package local

import (
	"context"
	"crypto/tls"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/wire"
)

// Knock connects to a forwarder as whoever has the SVID, past the caller's own, and
// opens a TCP connection
// to a target. The error is how it was refused; without one the target was reached.
func Knock(ctx context.Context, address string, target florete.ID, svid *tls.Certificate) error {
	dialable, err := florete.Dial(target)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Limit)
	defer cancel()
	conn, err := quic.DialAddr(ctx, address, &tls.Config{
		MinVersion: tls.VersionTLS13, NextProtos: []string{wire.ALPN}, ServerName: florete.SNI(dialable),
		Certificates: []tls.Certificate{*svid}, InsecureSkipVerify: true, // it is the caller who is on trial
	}, nil)
	if err != nil {
		return err
	}
	defer conn.CloseWithError(0, "")
	stream, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return err
	}
	_ = stream.SetDeadline(time.Now().Add(Limit))
	if _, err := stream.Write(wire.Preamble{Type: wire.TCP, Target: target}.Append(nil)); err != nil {
		return err
	}
	_, err = stream.Read(make([]byte, 1))
	return err
}
