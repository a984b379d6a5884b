package chains

import (
	"crypto/tls"
	"errors"
	"strings"
	"testing"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
)

// inboundOverTCP starts a forwarder that publishes Outline over TCP. It returns a function that
// presents a chain to the forwarder.
func inboundOverTCP(t *testing.T, ca *kit.CA) func(*testing.T, tls.Certificate) string {
	s, rejected := publishing(t, ca)
	l, err := s.ListenTCP()
	if err != nil {
		t.Fatal(err)
	}
	accepted := accepting(t, l)
	return func(t *testing.T, c tls.Certificate) string {
		select {
		case <-rejected:
		default:
		}
		conn, err := tls.Dial("tcp", l.Addr().String(), &tls.Config{
			ServerName: "outline.demo.flor.rete", InsecureSkipVerify: true, NextProtos: []string{wire.ALPNOverTCP}, Certificates: []tls.Certificate{c},
		})
		if err != nil {
			return err.Error()
		}
		defer conn.Close()
		ended := make(chan error, 1) // the client's handshake ends before the server's
		go func() {
			_, err := conn.Read(make([]byte, 1))
			ended <- err
		}()
		select {
		case err := <-ended:
			if strings.Contains(err.Error(), "tls: bad certificate") {
				return (<-rejected).Err.Error() // the connection ends before the rejection is reported
			}
			return err.Error()
		case in := <-accepted:
			in.Close(wire.Done)
			return ""
		}
	}
}

// outboundOverTCP starts a forwarder that connects to Outline over TCP for Alice. It returns a
// function that presents a chain to the forwarder.
func outboundOverTCP(t *testing.T, ca *kit.CA) func(*testing.T, tls.Certificate) string {
	set := host(t, ca, alice)
	target, err := spiffe.Dial(outline)
	if err != nil {
		t.Fatal(err)
	}
	return func(t *testing.T, c tls.Certificate) string {
		l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{c}, NextProtos: []string{wire.ALPNOverTCP}, ClientAuth: tls.RequestClientCert})
		if err != nil {
			t.Fatal(err)
		}
		defer l.Close()
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				go func() { defer conn.Close(); _, _ = conn.Read(make([]byte, 1)) }()
			}
		}()
		p, err := transport.NewPool(func() *hostdir.SVIDSet { return set }, &usage.Table{})
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		_, err = p.Probe(t.Context(), transport.Route{Caller: alice, Target: target, Endpoints: []document.Addresses{{l.Addr().String()}}, Transport: document.OverTCP})
		if wrong := new(transport.ImpostorError); errors.As(err, &wrong) {
			return wrong.Err.Error()
		} else if err != nil {
			return err.Error()
		}
		return ""
	}
}
