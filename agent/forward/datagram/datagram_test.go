package datagram_test

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/testutils/simnet"

	"github.com/florete/florete/agent/forward/datagram"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

func listen(t *testing.T) net.PacketConn {
	t.Helper()
	c, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// memory returns a network in memory, for virtual time (testing/synctest).
func memory(t *testing.T) (here, there net.PacketConn) {
	t.Helper()
	n := &simnet.Simnet{Router: &simnet.PerfectRouter{}}
	here = n.NewEndpoint(&net.UDPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, simnet.NodeBiDiLinkSettings{})
	there = n.NewEndpoint(&net.UDPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 1}, simnet.NodeBiDiLinkSettings{})
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { here.Close(); there.Close(); n.Close() })
	return here, there
}

// connect makes a QUIC connection and returns its two ends.
func connect(t *testing.T, here, there net.PacketConn, config *quic.Config) (client, server *quic.Conn) {
	t.Helper()
	tlsConfig := &tls.Config{Certificates: []tls.Certificate{*kit.NewCA().Issue(agenttest.Outline, time.Hour)}, NextProtos: []string{"test"}, InsecureSkipVerify: true}
	from, to := &quic.Transport{Conn: here}, &quic.Transport{Conn: there}
	t.Cleanup(func() { from.Close(); to.Close() })
	ln, err := to.Listen(tlsConfig, &quic.Config{EnableDatagrams: true, MaxIncomingStreams: 1 << 16})
	if err != nil {
		t.Fatal(err)
	}
	client, err = from.Dial(t.Context(), there.LocalAddr(), tlsConfig, config)
	if err != nil {
		t.Fatal(err)
	}
	server, err = ln.Accept(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return client, server
}

// end is one end of a connection and its sessions.
type end struct {
	conn  *datagram.Mux
	quic  *quic.Conn
	tasks sync.WaitGroup
}

func ends(t *testing.T, config *quic.Config) (client, server *end) {
	t.Helper()
	return endsOn(t, listen(t), listen(t), config)
}

func endsOn(t *testing.T, here, there net.PacketConn, config *quic.Config) (client, server *end) {
	t.Helper()
	c, s := connect(t, here, there, config)
	client, server = &end{quic: c}, &end{quic: s}
	for _, e := range []*end{client, server} {
		e.conn = datagram.NewMux(e.quic, &e.tasks)
		t.Cleanup(e.tasks.Wait)
	}
	t.Cleanup(func() { c.CloseWithError(0, ""); s.CloseWithError(0, "") })
	return client, server
}

// session is one end of a running session.
type session struct {
	*datagram.Session
	got                         chan []byte
	fromLocal, toLocal, dropped atomic.Int64
	ended                       chan error
}

func (e *end) begin(t *testing.T, st *quic.Stream, idle time.Duration, answer func() error) *session {
	t.Helper()
	f := &session{got: make(chan []byte, 1<<8), ended: make(chan error, 1)}
	f.Session = datagram.New(t.Context(), datagram.Local{
		Deliver: func(b []byte) {
			select {
			case f.got <- bytes.Clone(b):
			default: // of many, a test looks at some
			}
		},
		Idle:      idle,
		FromLocal: &f.fromLocal, ToLocal: &f.toLocal, Dropped: &f.dropped, Held: new(datagram.Held),
	})
	f.Attach(e.conn, st)
	go func() { f.ended <- f.Run(answer) }()
	return f
}

// sessions returns both ends of a new session.
func sessions(t *testing.T, c, s *end, idle time.Duration) (a, b *session) {
	t.Helper()
	st, err := c.quic.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	st.Write([]byte{1})
	theirs, err := s.quic.AcceptStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	theirs.Read(make([]byte, 1))
	answer := func() error { return nil }
	return c.begin(t, st, idle, answer), s.begin(t, theirs, idle, answer)
}

func (f *session) want(t *testing.T, payload string) {
	t.Helper()
	select {
	case b := <-f.got:
		if string(b) != payload {
			t.Fatalf("got %d bytes, want %d", len(b), len(payload))
		}
	case <-time.After(kit.Patience):
		t.Fatalf("no datagram of %d bytes", len(payload))
	}
}

func (f *session) wantEnd(t *testing.T) error {
	t.Helper()
	select {
	case err := <-f.ended:
		return err
	case <-time.After(kit.Patience):
		t.Fatal("the session does not end")
		return nil
	}
}

var enabled = &quic.Config{EnableDatagrams: true}

func TestBothWays(t *testing.T) {
	for name, config := range map[string]*quic.Config{"in frames": enabled, "to a peer that takes no frames": {}} {
		t.Run(name, func(t *testing.T) {
			c, s := ends(t, config)
			a, b := sessions(t, c, s, time.Minute)
			for _, size := range []int{0, 1, 1100, 1500, wire.MaxPayload} {
				payload := string(make([]byte, size))
				a.Send([]byte(payload))
				b.want(t, payload)
				b.Send([]byte(payload))
				a.want(t, payload)
			}
			// Closed sessions no longer count against the limit.
			large := string(make([]byte, wire.MaxPayload))
			for range 10 {
				a.Send([]byte(large + "x"))
				a.Send([]byte(large))
				b.want(t, large)
			}
			if n := a.dropped.Load(); n != 10 {
				t.Errorf("%d datagrams dropped, want the 10 that are too large", n)
			}
			b.Send([]byte(large))
			a.want(t, large)
			// Both ends count received bytes soon.
			back := int64(1 + 1100 + 1500 + 2*wire.MaxPayload)
			there := back + 9*wire.MaxPayload
			kit.Succeeds(t, "bytes to be counted", func() error {
				if a.fromLocal.Load() == there && b.toLocal.Load() == there && b.fromLocal.Load() == back && a.toLocal.Load() == back {
					return nil
				}
				return fmt.Errorf("%d bytes sent, %d received, want %d; %d and %d back, want %d",
					a.fromLocal.Load(), b.toLocal.Load(), there, b.fromLocal.Load(), a.toLocal.Load(), back)
			})
		})
	}
}

// TestBeforeTheAnswer checks that datagrams are sent at once, but frames only after the answer.
func TestBeforeTheAnswer(t *testing.T) {
	c, s := ends(t, enabled)
	st, err := c.quic.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	answered := make(chan struct{})
	a := c.begin(t, st, time.Minute, func() error { <-answered; return nil })
	a.Send([]byte("early"))
	theirs, err := s.quic.AcceptStream(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	b := s.begin(t, theirs, time.Minute, func() error { return nil })
	b.want(t, "early")
	close(answered)
	b.Send([]byte("answer"))
	a.want(t, "answer")
}

func TestIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const idle = 10 * time.Second
		here, there := memory(t)
		c, s := endsOn(t, here, there, enabled)
		a, b := sessions(t, c, s, idle)
		for range 6 {
			time.Sleep(idle - time.Millisecond)
			a.Send([]byte("x"))
			b.want(t, "x")
		}
		used := time.Now()
		for _, f := range []*session{a, b} {
			if err := f.wantEnd(t); err != nil {
				t.Error(err)
			}
		}
		if took := time.Since(used); took != idle {
			t.Errorf("ended after %s, want %s", took, idle)
		}
	})
}

func TestEndTellsWhy(t *testing.T) {
	c, s := ends(t, enabled)
	for code, want := range map[wire.Code]bool{wire.Done: false, wire.Refused: true, wire.Stopping: true} {
		a, b := sessions(t, c, s, time.Minute)
		b.End(code)
		if err := b.wantEnd(t); err != nil {
			t.Error(err)
		}
		err := a.wantEnd(t)
		var reset *quic.StreamError
		if want != (errors.As(err, &reset) && wire.Code(reset.ErrorCode) == code) {
			t.Errorf("%s: the peer sees %v", code, err)
		}
	}
}

func TestRefused(t *testing.T) {
	c, _ := ends(t, enabled)
	st, err := c.quic.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	no := errors.New("no")
	f := c.begin(t, st, time.Minute, func() error { return no })
	if err := f.wantEnd(t); err != no {
		t.Errorf("got %v", err)
	}
}

// TestNothingWaits checks that excess datagrams are dropped silently, without blocking the sender.
func TestNothingWaits(t *testing.T) {
	c, s := ends(t, enabled)
	a, _ := sessions(t, c, s, time.Minute)
	other, there := sessions(t, c, s, time.Minute)
	const n = 100_000
	done := make(chan struct{})
	go func() {
		defer close(done)
		for range n {
			a.Send(make([]byte, 1000))
		}
	}()
	select {
	case <-done:
	case <-time.After(kit.Patience):
		t.Fatal("Send waits")
	}
	// A datagram may be lost in such a crowd, but not all of them.
	kit.Eventually(t, "something of the other session to arrive", func() bool {
		other.Send([]byte("me too"))
		return len(there.got) > 0
	})
	if a.dropped.Load() == 0 || a.dropped.Load() == n || other.dropped.Load() != 0 {
		t.Errorf("dropped %d of %d, and %d of the other session", a.dropped.Load(), n, other.dropped.Load())
	}
}

// TestStreamIsStuck checks that a peer that does not read its stream costs only a queue of limited
// size.
func TestStreamIsStuck(t *testing.T) {
	c, _ := ends(t, enabled)
	st, err := c.quic.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	a := c.begin(t, st, time.Minute, func() error { return nil })
	for range 1000 {
		a.Send(make([]byte, 60_000))
	}
	if n := a.dropped.Load(); n < 980 {
		t.Errorf("%d dropped of 1000, of which the connection takes a few", n)
	}
	a.End(wire.Done)
	if err := a.wantEnd(t); err != nil {
		t.Error(err)
	}
}

// TestMaxSessions checks that one session too many ends the one that was idle longest.
func TestMaxSessions(t *testing.T) {
	c, s := ends(t, enabled)
	first, there := sessions(t, c, s, time.Minute)
	second, _ := sessions(t, c, s, time.Minute)
	first.Send([]byte("x")) // now the second is idle longest
	there.want(t, "x")
	for range datagram.MaxSessions - 1 {
		st, err := c.quic.OpenStreamSync(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c.begin(t, st, time.Minute, func() error { return nil })
	}
	if err := second.wantEnd(t); err != nil {
		t.Error(err)
	}
	select {
	case err := <-first.ended:
		t.Fatalf("the first ended too: %v", err)
	default:
	}
	first.Send([]byte("y"))
	there.want(t, "y")
}

// TestStrayFrames checks that frames of unknown sessions do no harm.
func TestStrayFrames(t *testing.T) {
	c, s := ends(t, enabled)
	_, b := sessions(t, c, s, time.Minute)
	for _, frame := range []string{"", "\x40", "\x3fgone", "\xff\xff\xff\xff\xff\xff\xff\xff", "\x00here"} {
		if err := c.quic.SendDatagram([]byte(frame)); err != nil {
			t.Fatal(err)
		}
	}
	b.want(t, "here")
}

// TestConnectionLost checks that the loss of a connection ends its sessions with the reason.
func TestConnectionLost(t *testing.T) {
	c, s := ends(t, enabled)
	a, _ := sessions(t, c, s, time.Minute)
	s.quic.CloseWithError(quic.ApplicationErrorCode(wire.Denied), "")
	var app *quic.ApplicationError
	if err := a.wantEnd(t); !errors.As(err, &app) || wire.Code(app.ErrorCode) != wire.Denied {
		t.Errorf("got %v", err)
	}
	c.tasks.Wait()
}

func TestSocket(t *testing.T) {
	server, err := net.ListenPacket("udp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	conn, err := net.Dial("udp", server.LocalAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := datagram.NewSocket(conn.(*net.UDPConn))
	if err != nil {
		t.Fatal(err)
	}
	for _, payload := range []string{"ping", ""} {
		if err := s.Send([]byte(payload)); err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 16)
		n, from, err := server.ReadFrom(b)
		if err != nil || string(b[:n]) != payload {
			t.Fatalf("got %q, %v", b[:n], err)
		}
		server.WriteTo(b[:n], from)
		got := "nothing"
		if err := s.Receive(func(b []byte) { got = string(b) }); err != nil || got != payload {
			t.Fatalf("got %q, %v", got, err)
		}
	}
	server.Close()
	s.Send([]byte("anybody?"))
	if err := s.Receive(func([]byte) {}); !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("error %v, want ECONNREFUSED", err)
	}
	ended := make(chan error)
	go func() { ended <- s.Receive(func([]byte) {}) }()
	kit.Parked(t, 1, ".Receive")
	s.Close()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
}
