package transport_test

import (
	"context"
	"crypto/tls"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
)

// TestHandshakesEnd checks that a handshake that succeeded or failed is no longer counted.
func TestHandshakesEnd(t *testing.T) {
	ca := kit.NewCA()
	var s server
	s.start(t, host(t, "ursula", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	if err := try(t, p, route(t, outline, s.addr)); err != nil {
		t.Fatal(err)
	}
	if n := s.ln.Handshakes(); n != 0 || s.ended.Load() != 0 {
		t.Errorf("%d handshakes under way with one connection, %d ended", n, s.ended.Load())
	}
	if err := try(t, p, route(t, wiki, s.addr)); err == nil {
		t.Fatal("connected to what has no SVID")
	}
	kit.Eventually(t, "the refused handshake to end", func() bool { return s.ln.Handshakes() == 0 })
}

// deaf sends and receives nothing, like a sender with a forged address.
type deaf struct {
	net.PacketConn
	closed chan struct{}
}

func (d deaf) ReadFrom([]byte) (int, net.Addr, error) {
	<-d.closed
	return 0, nil, net.ErrClosed
}

// TestForgedAddresses checks that senders that cannot receive answers take few resources, however
// often they begin, and that others are admitted meanwhile.
func TestForgedAddresses(t *testing.T) {
	const forged, bound = 160, 128
	ca := kit.NewCA()
	ursula := host(t, "ursula", ca, outline)
	var ln *transport.Listener
	listening := make(chan struct{})
	var begun, most atomic.Int64
	config := transport.Server{
		Addr: "127.0.0.1:0",
		Lookup: func(sni string) (spiffe.ID, bool) {
			begun.Add(1)
			<-listening
			if n := ln.Handshakes(); n > most.Load() {
				most.Store(n)
			}
			return registry(t).Lookup(sni)
		},
		Identities: func() *hostdir.SVIDSet { return ursula },
		Rejected:   func(r transport.Rejection) { t.Errorf("rejected: %+v", r) },
	}
	var err error
	ln, err = config.Listen()
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	close(listening)
	go func() {
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			go func() {
				if st, err := in.AcceptStream(); err == nil {
					st.Write([]byte{wire.Connected})
				}
			}()
		}
	}()

	socket, err := net.ListenUDP("udp", nil)
	if err != nil {
		t.Fatal(err)
	}
	closed := make(chan struct{})
	strangers := &quic.Transport{Conn: deaf{socket, closed}}
	ctx, cancel := context.WithCancel(t.Context())
	var dials sync.WaitGroup
	defer func() { cancel(); dials.Wait(); close(closed); socket.Close() }()
	var pause atomic.Bool // to begin would take all of a slow processor
	hello := &tls.Config{ServerName: "outline.demo.flor.rete", InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}}
	for range forged {
		dials.Go(func() {
			for ctx.Err() == nil { // again when it is given up
				if pause.Load() {
					time.Sleep(10 * time.Millisecond)
					continue
				}
				strangers.Dial(ctx, ln.Addr(), hello, nil)
			}
		})
	}
	laptop := host(t, "laptop", ca, alice)
	p, r := pool(t, func() *hostdir.SVIDSet { return laptop }), route(t, outline, ln.Addr().String())
	kit.Succeeds(t, "others to be let in meanwhile", func() error {
		pause.Store(false)
		kit.Eventually(t, "as many forged handshakes as there may be", func() bool { return ln.Handshakes() >= bound && begun.Load() >= bound })
		pause.Store(true)
		return try(t, p, r)
	})
	// Handshakes of proven addresses are added: those of alice, who tries again.
	if n := most.Load(); n > bound+8 {
		t.Errorf("%d handshakes were under way, want %d and alice's", n, bound)
	}
}
