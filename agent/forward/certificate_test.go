package forward_test

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

var scanner = kit.ID("outside/scanner")

// proven returns a running cluster in which the outside caller scanner may connect to Outline at an
// entry of Laptop, with its certificate.
func proven(t *testing.T, upstream string) (*cluster, *document.Entry) {
	t.Helper()
	c, e := entered(t, upstream, document.TCP)
	e.Caller, e.Outside = scanner, scanner.Name()
	c.acceptLaptop(t)
	c.start(t)
	return c, e
}

// present connects to an entry with a client certificate, which may be nil. It returns an error if
// no answer comes to one byte.
func present(t *testing.T, addr string, cert *tls.Certificate) (*tls.Conn, error) {
	t.Helper()
	p, err := net.Dial("tcp", addr)
	if err != nil {
		return nil, err // the kernel may report at once that the forwarder reset the connection
	}
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13} // see TestProvenHost
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	conn := tls.Client(p, config)
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(kit.Patience))
	if err := conn.Handshake(); err != nil {
		return conn, err
	}
	if _, err := conn.Write([]byte("a")); err != nil {
		return conn, err
	}
	_, err = io.ReadFull(conn, make([]byte, 1))
	return conn, err
}

// TestProven checks that only the certificate of the entry's caller leads to the service.
func TestProven(t *testing.T) {
	c, e := proven(t, agenttest.Echo(t))
	kit.Eventually(t, "the entry to lead to the service", func() bool {
		_, err := present(t, e.Listen, c.CA.Issue(scanner, time.Hour))
		return err == nil
	})
	foreign, err := spiffe.ParseID("spiffe://other.flor/outside/scanner")
	if err != nil {
		t.Fatal(err)
	}
	for name, x := range map[string]struct {
		cert  *tls.Certificate
		alert string
	}{
		"no certificate":            {nil, "certificate required"},
		"another outside caller":    {c.CA.Issue(kit.ID("outside/sensor"), time.Hour), "bad certificate"},
		"a user of the cluster":     {c.CA.Issue(alice, time.Hour), "bad certificate"},
		"a node of that name":       {c.CA.Issue(kit.ID("node/scanner"), time.Hour), "bad certificate"},
		"another CA of this domain": {kit.NewCA().Issue(scanner, time.Hour), "bad certificate"},
		"another trust domain":      {kit.NewCAOf("other.flor").Issue(foreign, time.Hour), "bad certificate"},
		"an expired certificate":    {c.CA.IssueAt(scanner, time.Now().Add(-2*time.Hour), time.Now().Add(-time.Hour)), "bad certificate"},
	} {
		if _, err := present(t, e.Listen, x.cert); err == nil || !strings.Contains(err.Error(), x.alert) {
			t.Errorf("%s: %v, want the alert %q", name, err, x.alert)
		}
	}
	if !closes(t, e.Listen) {
		t.Error("a caller without TLS reaches the service")
	}
	refusals(t, c.Laptop, "bad-certificate", 8)
}

// TestProvenFromNetworks checks that a caller with a certificate must also have one of the entry's
// addresses, if the entry has any, and that a connection ends if it has not.
func TestProvenFromNetworks(t *testing.T) {
	c, e := proven(t, agenttest.Echo(t))
	cert := c.CA.Issue(scanner, time.Hour)
	open, err := present(t, e.Listen, cert)
	if err != nil {
		t.Fatal(err)
	}
	e.From = []netip.Prefix{netip.MustParsePrefix("192.0.2.0/24")}
	c.acceptLaptop(t)
	if _, err := open.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("a connection is still open that a new manifest denies: %v", err)
	}
	if _, err := present(t, e.Listen, cert); err == nil {
		t.Error("a caller from another network reaches the service")
	}
	refusals(t, c.Laptop, "not-admitted", 1)
	e.From = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
	c.acceptLaptop(t)
	if _, err := present(t, e.Listen, cert); err != nil {
		t.Errorf("from a network of the entry: %v", err)
	}
}

// TestProvenRevoked checks that a revocation or suspension closes the open connections of an outside
// caller, and that new ones are refused.
func TestProvenRevoked(t *testing.T) {
	key := kit.SigningKey("demo-1")
	for name, list := range map[string]func(*tls.Certificate) trust.SignedRevocations{
		"identity": func(*tls.Certificate) trust.SignedRevocations {
			return kit.Revocations(1, key, revocation.Target{ID: scanner})
		},
		"suspended": func(*tls.Certificate) trust.SignedRevocations { return kit.Suspensions(1, key, scanner) },
		"certificate": func(c *tls.Certificate) trust.SignedRevocations {
			return kit.Revocations(1, key, revocation.Target{Certificates: []string{trust.SerialNumber(c.Leaf)}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			c, e := proven(t, agenttest.Echo(t))
			cert := c.CA.Issue(scanner, time.Hour)
			open, err := present(t, e.Listen, cert)
			if err != nil {
				t.Fatal(err)
			}
			kit.WriteRevocations(c.Laptop.Layout.Revocations(), list(cert))
			if _, err := open.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("the connection is still open: %v", err)
			}
			if _, err := present(t, e.Listen, cert); err == nil || !strings.Contains(err.Error(), "bad certificate") {
				t.Errorf("a new connection: %v", err)
			}
		})
	}
}

// TestProvenHost checks that the host proves itself with the certificate of its node.
func TestProvenHost(t *testing.T) {
	c, e := proven(t, agenttest.Echo(t))
	conn, err := present(t, e.Listen, c.CA.Issue(scanner, time.Hour))
	if err != nil {
		t.Fatal(err)
	}
	roots, err := trust.NewRoots(kit.Domain, []string{c.CA.RootPEM()})
	if err != nil {
		t.Fatal(err)
	}
	if id, err := roots.Verify(conn.ConnectionState().PeerCertificates, time.Now(), x509.ExtKeyUsageServerAuth); err != nil || id != laptop {
		t.Errorf("the host is %s, %v, want %s", id, err, laptop)
	}
}

// TestProvenCarries checks that all bytes arrive, that each direction ends on its own, and that an
// incomplete connection is reset at the other end.
func TestProvenCarries(t *testing.T) {
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	c, e := proven(t, ln.Addr().String())
	connect := func() (*tls.Conn, *net.TCPConn) {
		t.Helper()
		cert := c.CA.Issue(scanner, time.Hour)
		conn := tls.Client(dial(t, e.Listen), &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*cert}})
		if err := conn.Handshake(); err != nil {
			t.Fatal(err)
		}
		service, err := ln.Accept()
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { service.Close() })
		service.SetDeadline(time.Now().Add(kit.Patience))
		conn.SetDeadline(time.Now().Add(kit.Patience))
		return conn, service.(*net.TCPConn)
	}

	sent := []byte(strings.Repeat("0123456789abcdef", 1<<16))
	conn, service := connect()
	go func(caller *tls.Conn) {
		caller.Write(sent)
		caller.CloseWrite()
	}(conn)
	if got, err := io.ReadAll(service); err != nil || string(got) != string(sent) {
		t.Fatalf("the service got %d bytes, %v, want %d", len(got), err, len(sent))
	}
	go func(service *net.TCPConn) {
		service.Write(sent)
		service.CloseWrite()
	}(service)
	if got, err := io.ReadAll(conn); err != nil || string(got) != string(sent) {
		t.Fatalf("the caller got %d bytes, %v, want %d", len(got), err, len(sent))
	}
	conn.Close()
	kit.Eventually(t, "the connection to end", func() bool { return report(t, c.Laptop).Connections == 0 })

	conn, service = connect()
	conn.NetConn().Close() // without the alert close_notify
	if _, err := service.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("an incomplete connection ends with %v at the service, want a reset", err)
	}
	conn, service = connect()
	service.SetLinger(0)
	service.Close()
	if _, err := conn.Read(make([]byte, 1)); err == nil || errors.Is(err, io.EOF) {
		t.Errorf("a reset of the service is %v at the caller, want a reset", err)
	}
}
