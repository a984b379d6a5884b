package transport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/identity"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/tests/kit"
)

// TestEndpointThatIsNotResolved: a name server that says nothing keeps no other
// endpoint waiting.
func TestEndpointThatIsNotResolved(t *testing.T) {
	was := net.DefaultResolver
	t.Cleanup(func() { net.DefaultResolver = was }) // after the pool is closed, which uses it
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}
	ca := kit.NewCA()
	var s server
	s.start(t, host(t, "ursula", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *identity.Set { return laptop })
	begin := time.Now()
	if err := try(t, p, route(t, outline, "nobody-knows.example:4433", s.addr)); err != nil {
		t.Fatal(err)
	}
	if d := time.Since(begin); d >= 4*time.Second { // a name server is given 5
		t.Errorf("took %s although the second endpoint answers at once", d)
	}
}

// TestNoAnswer: a target's side that says nothing is waited for as long as the caller
// wants, and avoided then.
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
	p := pool(t, func() *identity.Set { return laptop })
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
