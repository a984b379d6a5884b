package transport_test

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

var (
	outline = kit.ID("service/outline")
	wiki    = kit.ID("service/wiki")
	alice   = kit.ID("user/alice")
)

// host returns a host with SVIDs of all ids.
func host(t *testing.T, name string, ca *kit.CA, ids ...spiffe.ID) *hostdir.SVIDSet {
	t.Helper()
	h := agenttest.NewHost(t, name, ca)
	h.Accept(document.Forwarder{}, ids...)
	for _, id := range ids {
		h.Deliver(ca, id, time.Hour)
	}
	return h.Identities(t)
}

// server is a published outline that answers every stream with Connected.
type server struct {
	addr     string
	accepted atomic.Int64 // connections
	ended    atomic.Int64
	streams  atomic.Int64
	delay    atomic.Int64 // of each answer, in nanoseconds
	broken   atomic.Bool  // its upstream refuses
	rejected chan transport.Rejection
	resetKey *quic.StatelessResetKey
	refuse   wire.Code                                      // every stream, unless 0
	deny     wire.Code                                      // every connection with its first stream, unless 0
	cut      chan func(code wire.Code, first quic.StreamID) // serves nothing, unless nil
	ln       *transport.Listener
}

func (s *server) start(t *testing.T, set *hostdir.SVIDSet) {
	t.Helper()
	s.rejected = make(chan transport.Rejection, 16)
	if s.addr == "" {
		s.addr = "127.0.0.1:0"
	}
	config := transport.Server{
		Addr:       s.addr,
		Lookup:     registry(t).Lookup,
		Identities: func() *hostdir.SVIDSet { return set },
		Rejected:   func(r transport.Rejection) { s.rejected <- r },
		ResetKey:   s.resetKey,
	}
	ln, err := config.Listen()
	if err != nil {
		t.Fatal(err)
	}
	s.ln, s.addr = ln, ln.Addr().String()
	done := make(chan struct{})
	t.Cleanup(func() { ln.Stop(); <-done; ln.Close() })
	go func() {
		defer close(done)
		for {
			in, err := ln.Accept()
			if err != nil {
				return
			}
			s.accepted.Add(1)
			if s.cut != nil {
				s.cut <- in.Cut
				continue
			}
			go func() {
				defer s.ended.Add(1)
				for {
					st, err := in.AcceptStream()
					if err != nil {
						return
					}
					wire.Read(st, wire.TCP)
					s.streams.Add(1)
					time.Sleep(time.Duration(s.delay.Load()))
					if s.deny != 0 {
						in.Close(s.deny)
					}
					refuse := s.refuse
					if s.broken.Load() {
						refuse = wire.Refused
					}
					if refuse != 0 {
						st.CancelRead(quic.StreamErrorCode(refuse))
						st.CancelWrite(quic.StreamErrorCode(refuse))
						continue
					}
					st.Write([]byte{wire.Connected})
				}
			}()
		}
	}()
}

func pool(t *testing.T, set func() *hostdir.SVIDSet) *transport.Pool {
	t.Helper()
	p, err := transport.NewPool(set, &usage.Table{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

func route(t *testing.T, target spiffe.ID, endpoints ...string) transport.Route {
	t.Helper()
	d, err := spiffe.Dial(target)
	if err != nil {
		t.Fatal(err)
	}
	r := transport.Route{Caller: alice, Target: d}
	for _, e := range endpoints {
		r.Endpoints = append(r.Endpoints, document.Addresses{e})
	}
	return r
}

// try opens a stream and waits for the answer.
func try(t *testing.T, p *transport.Pool, r transport.Route) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	st, err := p.Open(ctx, r, wire.TCP)
	if err != nil {
		return err
	}
	defer st.Release()
	defer st.Close()
	return st.Answer(ctx)
}

func TestOneConnectionForManyStreams(t *testing.T) {
	ca := kit.NewCA()
	var s server
	s.start(t, host(t, "ursula", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	errs := make(chan error)
	for range 20 {
		go func() { errs <- try(t, p, route(t, outline, s.addr)) }()
	}
	for range 20 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if n := s.accepted.Load(); n != 1 {
		t.Errorf("%d connections, want 1", n)
	}
}

func TestRenewedSVIDGetsANewConnection(t *testing.T) {
	ca := kit.NewCA()
	var s server
	s.start(t, host(t, "ursula", ca, outline))
	var laptop atomic.Pointer[hostdir.SVIDSet]
	laptop.Store(host(t, "laptop", ca, alice))
	p := pool(t, laptop.Load)
	r := route(t, outline, s.addr)
	old, err := p.Open(t.Context(), r, wire.TCP)
	if err != nil {
		t.Fatal(err)
	}
	laptop.Store(host(t, "laptop", ca, alice))
	if err := try(t, p, r); err != nil {
		t.Fatal(err)
	}
	if n := s.accepted.Load(); n != 2 {
		t.Errorf("%d connections, want 2", n)
	}
	if err := old.Answer(t.Context()); err != nil {
		t.Errorf("stream on the old connection: %v", err)
	}
	if s.ended.Load() != 0 {
		t.Error("the old connection ended before its last stream")
	}
	old.Close()
	old.Release()
	kit.Eventually(t, "the old connection to end with its last stream", func() bool { return s.ended.Load() == 1 })
}

// TestRenewedWhileConnecting checks that a connection made with the previous SVID may be retired
// before its first use.
func TestRenewedWhileConnecting(t *testing.T) {
	ca := kit.NewCA()
	var s server
	s.start(t, host(t, "ursula", ca, outline))
	sets := []*hostdir.SVIDSet{host(t, "laptop", ca, alice), host(t, "laptop", ca, alice)}
	var calls atomic.Int64
	p := pool(t, func() *hostdir.SVIDSet { return sets[calls.Add(1)/8%2] })
	r := route(t, outline, s.addr)
	errs := make(chan error)
	const many = 20
	for range many {
		go func() {
			var err error
			for i := 0; i < 20 && err == nil; i++ {
				err = try(t, p, r)
			}
			errs <- err
		}()
	}
	for range many {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
}

// TestRefusalIsSeenWhicheverWay checks that a refusal is reported although both directions end, and
// this side may notice the end of either first.
func TestRefusalIsSeenWhicheverWay(t *testing.T) {
	for name, s := range map[string]*server{
		"of the stream":     {refuse: wire.Unreachable},
		"of the connection": {deny: wire.Unreachable},
	} {
		t.Run(name, func(t *testing.T) {
			ca := kit.NewCA()
			s.start(t, host(t, "ursula", ca, outline))
			laptop := host(t, "laptop", ca, alice)
			p := pool(t, func() *hostdir.SVIDSet { return laptop })
			st, err := p.Open(t.Context(), route(t, outline, s.addr), wire.TCP)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Release()
			st.CancelRead(quic.StreamErrorCode(wire.Reset))
			<-st.Context().Done()
			err = st.Answer(t.Context())
			var refused *transport.RefusedError
			if !errors.As(err, &refused) || refused.Code != wire.Unreachable {
				t.Errorf("error %v, want upstream-unreachable", err)
			}
		})
	}
}

// TestCut checks that of the streams of a connection that is cut, only those that were not served
// are tried again.
func TestCut(t *testing.T) {
	for _, code := range []wire.Code{wire.Reset, wire.Denied} {
		t.Run(code.String(), func(t *testing.T) {
			ca := kit.NewCA()
			var s server
			s.cut = make(chan func(code wire.Code, first quic.StreamID), 1)
			s.start(t, host(t, "ursula", ca, outline))
			laptop := host(t, "laptop", ca, alice)
			p := pool(t, func() *hostdir.SVIDSet { return laptop })
			var streams []*transport.Stream
			for range 2 {
				st, err := p.Open(t.Context(), route(t, outline, s.addr), wire.TCP)
				if err != nil {
					t.Fatal(err)
				}
				defer st.Release()
				streams = append(streams, st)
			}
			(<-s.cut)(code, streams[1].StreamID())
			for i, want := range []wire.Code{code, wire.Stopping} {
				err := streams[i].Answer(t.Context())
				var refused *transport.RefusedError
				if !errors.As(err, &refused) || refused.Code != want {
					t.Errorf("stream %d: error %v, want %s", i, err, want)
				}
			}
		})
	}
}

func TestAnswerToAStreamGivenUp(t *testing.T) {
	ca := kit.NewCA()
	var s server
	s.start(t, host(t, "ursula", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	st, err := p.Open(t.Context(), route(t, outline, s.addr), wire.TCP)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Release()
	st.CancelRead(quic.StreamErrorCode(wire.Reset))
	if err := st.Answer(t.Context()); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want context.Canceled", err)
	}
}

// TestWrongSAN uses a certificate of the right CA for another service.
func TestWrongSAN(t *testing.T) {
	ca := kit.NewCA()
	other := host(t, "raishan", ca, wiki).SVID(wiki).Cert
	ln, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{other}, NextProtos: []string{wire.ALPN}, ClientAuth: tls.RequireAnyClientCert,
	}, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	err = try(t, p, route(t, outline, ln.Addr().String()))
	var impostor *transport.ImpostorError
	if !errors.As(err, &impostor) || impostor.Claims != wiki || impostor.Want != outline {
		t.Fatalf("error %v, want an ImpostorError", err)
	}
	if want := "is not spiffe://demo.flor/service/outline: certificate is for spiffe://demo.flor/service/wiki"; !strings.Contains(err.Error(), want) {
		t.Errorf("error %q, want %q", err, want)
	}
}

func TestTargetWithoutSVID(t *testing.T) {
	ca := kit.NewCA()
	var s server
	s.start(t, host(t, "ursula", ca))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	err := try(t, p, route(t, outline, s.addr))
	var refused *transport.RefusedError
	if !errors.As(err, &refused) || refused.Code != wire.NotPublished || refused.Peer != outline {
		t.Fatalf("error %v, want not-published by outline", err)
	}
	if r := <-s.rejected; r.Reason != "no-identity" || r.Target != outline {
		t.Errorf("server counted %+v", r)
	}
}

func TestUnknownName(t *testing.T) {
	ca := kit.NewCA()
	var s server
	s.start(t, host(t, "ursula", ca, outline))
	laptop := host(t, "laptop", ca, alice)
	p := pool(t, func() *hostdir.SVIDSet { return laptop })
	err := try(t, p, route(t, wiki, s.addr))
	var refused *transport.RefusedError
	if !errors.As(err, &refused) || refused.Code != wire.NotPublished {
		t.Fatalf("error %v, want not-published", err)
	}
	if r := <-s.rejected; r.Reason != "unknown-name" || r.SNI != "wiki.demo.flor.rete" {
		t.Errorf("server counted %+v", r)
	}
}

// dialRaw connects with a TLS configuration of the test's own.
func dialRaw(t *testing.T, addr string, config *tls.Config) (*quic.Conn, error) {
	t.Helper()
	config.ServerName = "outline.demo.flor.rete"
	config.InsecureSkipVerify = true
	if config.NextProtos == nil {
		config.NextProtos = []string{wire.ALPN}
	}
	ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
	defer cancel()
	conn, err := quic.DialAddr(ctx, addr, config, nil)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { conn.CloseWithError(0, "") })
	// The server checks the client after the client's handshake is complete.
	st, err := conn.OpenStreamSync(ctx)
	if err != nil {
		return nil, err
	}
	st.Write(wire.Preamble{Type: wire.TCP, Target: outline}.Append(nil))
	st.SetReadDeadline(time.Now().Add(kit.Patience))
	_, err = st.Read(make([]byte, 1))
	return conn, err
}

func TestClientCertificateIsRequired(t *testing.T) {
	var s server
	s.start(t, host(t, "ursula", kit.NewCA(), outline))
	if _, err := dialRaw(t, s.addr, &tls.Config{}); err == nil || !strings.Contains(err.Error(), "certificate required") {
		t.Errorf("error %v, want: certificate required", err)
	}
	if s.accepted.Load() != 0 {
		t.Error("accepted")
	}
}

func TestALPNIsRequired(t *testing.T) {
	ca := kit.NewCA()
	var s server
	s.start(t, host(t, "ursula", ca, outline))
	cert := host(t, "laptop", ca, alice).SVID(alice).Cert
	_, err := dialRaw(t, s.addr, &tls.Config{Certificates: []tls.Certificate{cert}, NextProtos: []string{"florete/2"}})
	if err == nil || !strings.Contains(err.Error(), "no application protocol") {
		t.Errorf("error %v, want: no application protocol", err)
	}
}

// tickets counts the session tickets of a server.
type tickets struct {
	tls.ClientSessionCache
	n atomic.Int64
}

func (c *tickets) Put(key string, s *tls.ClientSessionState) {
	c.n.Add(1)
	c.ClientSessionCache.Put(key, s)
}

// TestNoResumption checks that a client that wants to resume gets no session ticket.
func TestNoResumption(t *testing.T) {
	ca := kit.NewCA()
	var s server
	s.start(t, host(t, "ursula", ca, outline))
	cache := &tickets{ClientSessionCache: tls.NewLRUClientSessionCache(8)}
	cert := host(t, "laptop", ca, alice).SVID(alice).Cert
	for range 2 {
		conn, err := dialRaw(t, s.addr, &tls.Config{Certificates: []tls.Certificate{cert}, ClientSessionCache: cache})
		if err != nil {
			t.Fatal(err)
		}
		if conn.ConnectionState().TLS.DidResume {
			t.Error("resumed")
		}
	}
	if n := cache.n.Load(); n != 0 {
		t.Errorf("%d session tickets, want none", n)
	}
}
