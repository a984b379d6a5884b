package chains

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/kit/providertest"
)

var (
	node     = kit.ID("node/ursula")
	alice    = kit.ID("user/alice")
	outline  = kit.ID("service/outline")
	provider = kit.ProviderID("drhorrible", "cert")
)

// badCertificate is the TLS alert bad_certificate as a QUIC error code (RFC 9001, section 4.8).
const badCertificate = quic.TransportErrorCode(0x12a)

// verifier is one of the ends of a connection that verify the certificate chain of their peer.
type verifier struct {
	name   string
	client bool      // whether the peer is a TLS client
	peer   spiffe.ID // the peer that the verifier accepts
	// present presents the chain in a real handshake. It returns the reason why the chain was
	// refused, as either side reports it. It returns "" if the chain was accepted.
	present func(t *testing.T, c tls.Certificate) string
}

func verifiers(t *testing.T, ca *kit.CA) []verifier {
	return []verifier{
		{"provider", true, node, providerServer(t, ca)},
		{"provider's client", false, provider, providerClient(t, ca)},
		{"forwarder, inbound", true, alice, inbound(t, ca)},
		{"forwarder, outbound", false, outline, outbound(t, ca)},
		{"forwarder, inbound over TCP", true, alice, inboundOverTCP(t, ca)},
		{"forwarder, outbound over TCP", false, outline, outboundOverTCP(t, ca)},
	}
}

// providerServer starts a provider that has published nothing. It returns a function that presents
// a chain to the provider as a host. A host that is admitted is told that nothing is published.
func providerServer(t *testing.T, ca *kit.CA) func(*testing.T, tls.Certificate) string {
	e := providertest.NewEnv(t, "ursula")
	var log logs
	e.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	e.Policy.Trust.Roots = append(e.Policy.Trust.Roots, ca.RootPEM())
	e.Grant(node, "config-documents", distribution.Name, struct{}{})
	e.Runs(distribution.Name, struct{}{}, func(e *providertest.Env) server.AnyKind {
		return distribution.New(archive.Archive{Store: e.Store}).Kind()
	})
	e.Start()
	return func(t *testing.T, c tls.Certificate) string {
		log.take()
		client := e.Stranger(node)
		client.SVID = &c
		_, err := client.Artifact(t.Context())
		if e := hostapi.AsError(err); e.Code == hostapi.CodeMissing.Name && strings.Contains(e.Message, "published here yet") {
			return ""
		}
		if hostapi.AsError(err).Code != hostapi.CodeUnavailable.Name {
			return err.Error()
		}
		for { // the connection ends before the line is written
			if line := log.take(); strings.Contains(line, "code="+server.CodeHandshake) {
				return line
			}
			time.Sleep(time.Millisecond)
		}
	}
}

// providerClient starts a host that calls its provider. It returns a function that presents a chain
// to the host as the provider.
func providerClient(t *testing.T, ca *kit.CA) func(*testing.T, tls.Certificate) string {
	svid := host(t, ca, alice).SVID(alice).Cert
	return func(t *testing.T, c tls.Certificate) string {
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{c}, ClientAuth: tls.RequestClientCert})
		if err != nil {
			t.Fatal(err)
		}
		s := &http.Server{ErrorLog: slog.NewLogLogger(slog.DiscardHandler, 0), Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(`{"documents":[]}`)) })}
		go s.Serve(l)
		defer s.Close()
		client := &hostapi.Client{Node: node, Provider: document.Provider{ID: provider, Addresses: []string{l.Addr().String()}}, Roots: ca.Roots(), SVID: &svid}
		if _, err := client.Artifact(t.Context()); err != nil {
			return err.Error()
		}
		return ""
	}
}

func host(t *testing.T, ca *kit.CA, id spiffe.ID) *hostdir.SVIDSet {
	h := agenttest.NewHost(t, id.Name(), ca)
	h.Accept(document.Forwarder{}, id)
	h.Deliver(ca, id, time.Hour)
	return h.Identities(t)
}

// publishing starts a forwarder that publishes Outline. Chains that it rejects are sent to the
// channel.
func publishing(t *testing.T, ca *kit.CA) (s transport.Server, rejected chan transport.Rejection) {
	set := host(t, ca, outline)
	registry, err := transport.NewRegistry(document.Forwarder{Publish: []document.Published{{ID: outline}}})
	if err != nil {
		t.Fatal(err)
	}
	rejected = make(chan transport.Rejection, 1)
	return transport.Server{Addr: "127.0.0.1:0", Lookup: registry.Lookup, Identities: func() *hostdir.SVIDSet { return set }, Rejected: func(r transport.Rejection) {
		select {
		case rejected <- r:
		default: // left from an earlier attempt
		}
	}}, rejected
}

// listener is a transport.Listener or a transport.TCPListener.
type listener interface {
	Accept() (*transport.Incoming, error)
	Stop()
	Close()
}

// accepting returns a channel of the connections that a listener admits.
func accepting(t *testing.T, l listener) <-chan *transport.Incoming {
	accepted := make(chan *transport.Incoming)
	go func() {
		defer close(accepted)
		for {
			in, err := l.Accept()
			if err != nil {
				return
			}
			accepted <- in
		}
	}()
	t.Cleanup(func() { l.Stop(); <-accepted; l.Close() })
	return accepted
}

// inbound starts a forwarder that publishes Outline over QUIC. It returns a function that presents
// a chain to the forwarder.
func inbound(t *testing.T, ca *kit.CA) func(*testing.T, tls.Certificate) string {
	s, rejected := publishing(t, ca)
	l, err := s.Listen()
	if err != nil {
		t.Fatal(err)
	}
	accepted := accepting(t, l)
	return func(t *testing.T, c tls.Certificate) string {
		select {
		case <-rejected:
		default:
		}
		conn, err := quic.DialAddr(t.Context(), l.Addr().String(), &tls.Config{
			ServerName: "outline.demo.flor.rete", InsecureSkipVerify: true, NextProtos: []string{wire.ALPN}, Certificates: []tls.Certificate{c},
		}, nil)
		refused := func(err error) string {
			if e := new(quic.TransportError); errors.As(err, &e) && e.ErrorCode == badCertificate {
				return (<-rejected).Err.Error() // the connection ends before the rejection is reported
			}
			return err.Error()
		}
		if err != nil { // on a busy machine, the refusal comes before the handshake is done here
			return refused(err)
		}
		defer conn.CloseWithError(0, "")
		select {
		case <-conn.Context().Done():
			return refused(context.Cause(conn.Context()))
		case <-accepted:
			return ""
		}
	}
}

// outbound starts a forwarder that connects to Outline for Alice. It returns a function that
// presents a chain to the forwarder.
func outbound(t *testing.T, ca *kit.CA) func(*testing.T, tls.Certificate) string {
	set := host(t, ca, alice)
	target, err := spiffe.Dial(outline)
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, c tls.Certificate) string {
		l, err := quic.ListenAddr("127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{c}, NextProtos: []string{wire.ALPN}, ClientAuth: tls.RequestClientCert}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		p, err := transport.NewPool(func() *hostdir.SVIDSet { return set }, &usage.Table{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		_, err = p.Probe(t.Context(), transport.Route{Caller: alice, Target: target, Endpoints: []document.Addresses{{l.Addr().String()}}})
		if wrong := new(transport.ImpostorError); errors.As(err, &wrong) {
			return wrong.Err.Error()
		} else if err != nil {
			return err.Error()
		}
		return ""
	}
}

// logs collects the log of a program under test, to find the reason for a refusal.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(b)
}

func (l *logs) take() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.b.Reset()
	return l.b.String()
}
