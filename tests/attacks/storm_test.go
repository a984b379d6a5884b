//go:build !race

package attacks

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
)

// TestStorms sends requests to the forwarder of host b at the highest rate, and requests that are
// never finished. The forwarder must stay within its limits, and other callers must be served.
func TestStorms(t *testing.T) {
	run(t, []attack{
		{
			// The streams take about 300 MiB. The garbage collector lets memory double before it
			// runs, so 420 to 610 MiB are used.
			name:    "a million streams that are begun and send nothing more",
			try:     bounded(700, 100, anyTransport, begin),
			refusal: "refused: busy",
		},
		{
			name:    "handshakes that nobody goes on with",
			try:     bounded(200, 100, anyTransport, initials),
			refusal: "deadline exceeded",
		},
		{
			name:    "datagrams as fast as can be",
			try:     bounded(200, 100, anyTransport, overAny(datagrams)),
			refusal: "datagrams arrive",
		},
		{
			name:    "datagrams over TCP as fast as can be",
			try:     bounded(200, 120, document.OverTCP, over(document.OverTCP, datagrams)),
			refusal: "datagrams arrive",
		},
	})
}

// over returns an attack that reaches the forwarder over a given transport.
func over(transport document.Transport, try func(*testing.T, *cluster, document.Transport) error) func(*testing.T, *cluster) error {
	return func(t *testing.T, c *cluster) error { return try(t, c, transport) }
}

func overAny(try func(*testing.T, *cluster, document.Transport) error) func(*testing.T, *cluster) error {
	return over(anyTransport, try)
}

// begin is an attack with unfinished streams. It opens as many connections, and as many streams on
// each, as the forwarder allows, and sends half of the header of each stream.
func begin(t *testing.T, c *cluster) error {
	const connections = 256
	var begun atomic.Int64
	var closed atomic.Pointer[error] // the first error
	var all sync.WaitGroup
	turns := make(chan struct{}, 8)
	for range connections {
		all.Go(func() {
			turns <- struct{}{}
			defer func() { <-turns }()
			conn, err := quic.DialAddr(t.Context(), c.b.Manifest.Forwarder.Listen[0], c.hello(t, "alice"), nil)
			for err == nil {
				var st *quic.Stream
				if st, err = conn.OpenStream(); err == nil {
					_, err = st.Write([]byte{1})
					begun.Add(1)
				}
			}
			var limit *quic.StreamLimitReachedError
			if errors.As(err, &limit) { // the connection has its maximum of streams, which stay to the end
				t.Cleanup(func() { conn.CloseWithError(0, "") })
				context.AfterFunc(conn.Context(), func() {
					err := context.Cause(conn.Context())
					closed.CompareAndSwap(nil, &err)
				})
				return
			}
			closed.CompareAndSwap(nil, &err)
		})
	}
	all.Wait()
	t.Logf("%d streams were begun", begun.Load())
	kit.Eventually(t, "the connection to be closed", func() bool { return closed.Load() != nil })
	var app *quic.ApplicationError
	err := closed.Load()
	switch {
	case err == nil:
		return nil
	case errors.As(*err, &app):
		return fmt.Errorf("refused: %s", wire.Code(app.ErrorCode))
	}
	return *err
}

// hello returns a TLS configuration with which a user connects to the service echo. The
// configuration does not verify the server.
func (c *cluster) hello(t *testing.T, user string) *tls.Config {
	t.Helper()
	svid, err := c.c.SVID("cert-user-" + user)
	if err != nil {
		t.Fatal(err)
	}
	target, err := spiffe.Dial(kit.ID("service/echo"))
	if err != nil {
		t.Fatal(err)
	}
	return &tls.Config{MinVersion: tls.VersionTLS13, ServerName: spiffe.SNI(target), NextProtos: []string{wire.ALPN}, Certificates: []tls.Certificate{*svid}, InsecureSkipVerify: true}
}

// unheard is a packet connection that drops everything it receives. A sender with a forged source
// address is in the same position.
type unheard struct{ net.PacketConn }

func (u unheard) ReadFrom(b []byte) (int, net.Addr, error) {
	for {
		if _, _, err := u.PacketConn.ReadFrom(b); err != nil {
			return 0, nil, err
		}
	}
}

// initials is an attack that begins handshakes over UDP and does not continue them.
func initials(t *testing.T, c *cluster) error {
	const sockets, each = 16, 250
	to, err := net.ResolveUDPAddr("udp", c.b.Manifest.Forwarder.Listen[0])
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
	defer cancel()
	var last atomic.Pointer[error]
	var all sync.WaitGroup
	for range sockets {
		socket, err := net.ListenPacket("udp", "")
		if err != nil {
			t.Fatal(err)
		}
		tr := &quic.Transport{Conn: unheard{socket}}
		defer func() { tr.Close(); socket.Close() }()
		for range each {
			all.Go(func() {
				_, err := tr.Dial(ctx, to, c.hello(t, "alice"), &quic.Config{HandshakeIdleTimeout: time.Minute})
				last.Store(&err)
			})
		}
	}
	all.Wait()
	return *last.Load()
}

// datagrams is an attack that sends as many datagrams as possible to a service, from several
// sockets, for a while.
func datagrams(t *testing.T, c *cluster, over document.Transport) error {
	const sessions, lasting = 8, 8 * time.Second
	upstream, err := net.ListenPacket("udp", c.loopback+".0.2:8902")
	if err != nil {
		t.Fatal(err)
	}
	defer upstream.Close()
	var arrived, sent atomic.Int64
	var held datagram.Held
	go func() {
		for b := make([]byte, 64<<10); ; arrived.Add(1) {
			if _, _, err := upstream.ReadFrom(b); err != nil {
				return
			}
		}
	}()
	p := c.pool(t)
	defer p.Close()
	var all sync.WaitGroup
	for range sessions {
		st, err := c.openFor(t, p, "user/alice", "heard", over, wire.UDP)
		if err == nil {
			err = st.Answer(t.Context())
		}
		if err != nil {
			return err
		}
		session := datagram.New(t.Context(), datagram.Local{
			Deliver: func([]byte) {}, Idle: datagram.Idle, Held: &held,
			FromLocal: &sent, ToLocal: new(atomic.Int64), Dropped: new(atomic.Int64),
		})
		session.Attach(st.Mux(), st.Stream)
		all.Go(func() {
			defer st.Release()
			if err := session.Run(func() error { return nil }); err != nil {
				t.Error(st.Explain(err))
			}
		})
		all.Go(func() {
			defer session.Stop()
			for end := time.Now().Add(lasting); time.Now().Before(end) && session.Context().Err() == nil; time.Sleep(100 * time.Microsecond) {
				for range 16 {
					session.Send(make([]byte, 1100))
				}
			}
		})
	}
	all.Wait()
	if arrived.Load() < 1000 {
		t.Error("too few datagrams arrive for a storm")
	}
	return fmt.Errorf("%d of %d datagrams arrive", arrived.Load(), sent.Load()/1100)
}
