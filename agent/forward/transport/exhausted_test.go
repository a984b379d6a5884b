package transport_test

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// TestExhausted checks that the error says so, at once, if the other forwarder allows no further
// stream.
func TestExhausted(t *testing.T) {
	ca := kit.NewCA()
	svid := host(t, "ursula", ca, outline).SVID(outline)
	ln, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{svid.Cert}, NextProtos: []string{wire.ALPN}, ClientAuth: tls.RequireAnyClientCert,
	}, &quic.Config{MaxIncomingStreams: 2, EnableDatagrams: true})
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	laptop := host(t, "laptop", ca, alice)
	var table usage.Table
	p, err := transport.NewPool(func() *hostdir.SVIDSet { return laptop }, &table)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	r := route(t, outline, ln.Addr().String())
	for range 2 {
		st, err := p.Open(t.Context(), r, wire.TCP)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Release()
	}
	if rows := table.Rows(); len(rows) != 1 || rows[0].Full || rows[0].Streams != 2 || rows[0].Opened != 2 {
		t.Errorf("connections: %+v, want one with 2 streams", rows)
	}
	_, err = p.Open(t.Context(), r, wire.TCP) // without a deadline
	if !errors.Is(err, transport.ErrFull) || !strings.Contains(err.Error(), "2 are in use") {
		t.Errorf("a third: %v, want %v", err, transport.ErrFull)
	}
	if rows := table.Rows(); len(rows) != 1 || !rows[0].Full || rows[0].Streams != 2 || rows[0].Opened != 2 {
		t.Errorf("connections: %+v, want one that is full", rows)
	}
}
