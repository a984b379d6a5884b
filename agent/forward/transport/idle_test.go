package transport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/tests/kit"
)

// TestEndpointThatIsNotResolved checks that a silent name server does not delay the other
// endpoints.
func TestEndpointThatIsNotResolved(t *testing.T) {
	was, asked, done := net.DefaultResolver, make(chan struct{}, 64), make(chan struct{})
	t.Cleanup(func() { net.DefaultResolver = was }) // after the pool is closed, which uses it
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		asked <- struct{}{}
		<-done // longer than whatever the other endpoint may take
		return nil, context.Canceled
	}}
	defer close(done)
	ca := kit.NewCA()
	var s server
	s.start(t, host(t, "ursula", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	p.InOrder()
	r := route(t, outline, "nobody-knows.example:4433", s.addr)
	if err := try(t, p, r); err != nil {
		t.Fatal(err)
	}
	if len(asked) == 0 || p.Failures(r) != 0 {
		t.Errorf("the name server was asked %d times, and %d failures were waited for, want some and none", len(asked), p.Failures(r))
	}
}

// TestNoAnswer checks that a silent target is waited for as long as the caller wants, and then
// avoided.
func TestNoAnswer(t *testing.T) {
	ca := kit.NewCA()
	mute, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{host(t, "raishan", ca, outline).SVID(outline).Cert},
		NextProtos:   []string{wire.ALPN}, ClientAuth: tls.RequireAnyClientCert,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer mute.Close()
	var s server
	s.start(t, host(t, "ursula", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	p.InOrder()
	r := route(t, outline, mute.Addr().String(), s.addr)
	st, err := p.Open(t.Context(), r, wire.TCP)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Release()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := st.Answer(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("error %v, want context.DeadlineExceeded", err)
	}
	if err := try(t, p, r); err != nil {
		t.Errorf("the other endpoint: %v", err)
	}
}
