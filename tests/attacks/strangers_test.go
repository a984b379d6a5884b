package attacks

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// serveStrangers runs the service mail, which answers with the address that it believes its caller
// to have.
func (c *cluster) serveStrangers(context.Context) error {
	l, err := c.listen("tcp", c.loopback+".0.2:8909")
	if err != nil {
		return err
	}
	go kit.Accept(l, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		h, err := proxyproto.Read(r)
		if err != nil {
			fmt.Fprintf(conn, "no caller: %v\n", err)
			return
		}
		fmt.Fprintf(conn, "caller %v\n", h.SourceAddr)
		_, _ = io.Copy(io.Discard, r)
	})
	return nil
}

// stranger connects to a port of host c from an address of the cluster's network.
func (c *cluster) stranger(from string, port int) (net.Conn, error) {
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(c.loopback + ".0." + from)}, Timeout: local.Limit}
	conn, err := d.Dial("tcp", fmt.Sprintf("%s.0.3:%d", c.loopback, port))
	if err == nil {
		_ = conn.SetDeadline(time.Now().Add(local.Limit))
	}
	return conn, err
}

// tell connects as a stranger, sends bytes and returns the first line of the answer.
func (c *cluster) tell(from string, port int, b []byte) (line string, err error) {
	conn, err := c.stranger(from, port)
	if err != nil {
		return "", err
	}
	defer conn.Close()
	if _, err := conn.Write(b); err != nil {
		return "", err
	}
	return bufio.NewReader(conn).ReadString('\n')
}

// camera is the caller without an agent that has a certificate.
var camera = kit.ID("outside/camera")

// present connects to the port for camera with a certificate, which may be nil, and returns the
// connection after the service has answered.
func (c *cluster) present(cert *tls.Certificate) (*tls.Conn, error) {
	conn, err := c.stranger("65", 8910)
	if err != nil {
		return nil, err
	}
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	client := tls.Client(conn, config)
	if _, err = client.Write([]byte("hello\n")); err == nil {
		_, err = io.ReadFull(client, make([]byte, 6))
	}
	if err != nil {
		conn.Close()
		return nil, err
	}
	return client, nil
}

// revokedCamera revokes a certificate of camera that a live connection uses, and presents it again.
func (c *cluster) revokedCamera(t *testing.T) error {
	cert := c.issue(t, camera, func(*x509.Certificate) {})
	live, err := c.present(cert)
	if err != nil {
		t.Fatal(err)
	}
	defer live.Close()
	// Earlier attacks made the host wait before it asks again. It waits no longer once it has a list.
	list := c.revoke(t, c.offered(t), func(*trust.Revocations) {})
	if err := c.offer(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	same, err := list.Open()
	if err != nil {
		t.Fatal(err)
	}
	c.waitList(t, c.c, same.Number)
	list = c.revoke(t, list, func(l *trust.Revocations) {
		revocation.Revoke(l, revocation.Target{Certificates: []string{trust.SerialNumber(cert.Leaf)}})
	})
	began := time.Now()
	if err := c.offer(t.Context(), list); err != nil {
		t.Fatal(err)
	}
	_ = live.SetReadDeadline(began.Add(within))
	if _, err := live.Read(make([]byte, 1)); err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("a live connection goes on %s after its certificate was revoked: %v", time.Since(began), err)
	}
	_, err = c.present(cert)
	return err
}

// TestStrangers attacks the public ports of services, and the ports for callers without an agent.
// The address of the public port for mail is .66, and that of the caller without an agent or a
// certificate is .67.
func TestStrangers(t *testing.T) {
	forged := []byte("PROXY TCP4 198.51.100.1 198.51.100.2 1 2\r\n\n")
	// reached returns nil if a service has answered, and otherwise the refusal.
	reached := func(from string, port int) func(*testing.T, *cluster) error {
		return func(_ *testing.T, c *cluster) error {
			_, err := c.tell(from, port, []byte("hello\n"))
			return err
		}
	}
	named := func(name string) func(*testing.T, *cluster) error {
		return func(t *testing.T, c *cluster) error {
			conn, err := c.stranger("65", 8883)
			if err != nil {
				return err
			}
			defer conn.Close()
			// The service returns the ClientHello, which is no answer that TLS expects.
			return tls.Client(conn, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake()
		}
	}
	states := func(who func(*cluster) *local.Host, need, from string) func(*testing.T, *cluster) error {
		return func(t *testing.T, c *cluster) error {
			mail, err := spiffe.NewID(kit.Domain, spiffe.KindService, "", "mail")
			if err != nil {
				t.Fatal(err)
			}
			origin := wire.Origin{From: netip.MustParseAddrPort(from), To: netip.MustParseAddrPort("203.0.113.1:25")}
			return local.KnockFor(t.Context(), c.b.Manifest.Forwarder.Listen[0], mail, c.svid(t, who(c), need), origin)
		}
	}
	presents := func(cert func(*testing.T, *cluster) *tls.Certificate) func(*testing.T, *cluster) error {
		return func(t *testing.T, c *cluster) error {
			_, err := c.present(cert(t, c))
			return err
		}
	}
	issued := func(id spiffe.ID) func(*testing.T, *cluster) *tls.Certificate {
		return func(t *testing.T, c *cluster) *tls.Certificate { return c.issue(t, id, func(*x509.Certificate) {}) }
	}
	hostC := func(c *cluster) *local.Host { return c.c }
	t.Run("strangers and the host of the entry are let through", func(t *testing.T) {
		c := start(t)
		kit.Succeeds(t, "an answer of mail", func() error { return reached("66", 2525)(t, c) })
		kit.Succeeds(t, "an answer of inner", func() error { return reached("67", 8911)(t, c) })
		kit.Succeeds(t, "an answer of queue", func() error { return presents(issued(camera))(t, c) })
		if err := states(hostC, "cert-node", "198.51.100.1:1")(t, c); err != nil {
			t.Error(err)
		}
		if err := named("mq.example.org")(t, c); err == nil || errors.As(err, new(*net.OpError)) {
			t.Errorf("the service did not answer under its name: %v", err)
		}
	})
	run(t, []attack{
		{
			name:    "a stranger from another network",
			try:     reached("65", 2525),
			refusal: "reset",
		},
		{
			name:    "a stranger at the port of a caller without an agent",
			try:     reached("65", 8911),
			refusal: "reset",
		},
		{
			name:    "a caller without an agent at a port for other strangers",
			try:     reached("67", 2525),
			refusal: "reset",
		},
		{
			name:    "no certificate at the port of a caller that has one",
			try:     presents(func(*testing.T, *cluster) *tls.Certificate { return nil }),
			refusal: "certificate required",
		},
		{
			name:    "no TLS at the port of a caller that has a certificate",
			try:     reached("65", 8910),
			refusal: "EOF",
		},
		{
			name:    "the certificate of another caller without an agent",
			try:     presents(issued(kit.ID("outside/scanner"))),
			refusal: "bad certificate",
		},
		{
			name:    "the certificate of a user of the cluster",
			try:     presents(func(t *testing.T, c *cluster) *tls.Certificate { return c.svid(t, c.c, "cert-user-alice") }),
			refusal: "bad certificate",
		},
		{
			name: "the same name in another trust domain",
			try: presents(func(t *testing.T, _ *cluster) *tls.Certificate {
				id, err := spiffe.NewID("blue.example", spiffe.KindOutside, "", "camera")
				if err != nil {
					t.Fatal(err)
				}
				return kit.NewCAOf("blue.example").Issue(id, time.Hour)
			}),
			refusal: "bad certificate",
		},
		{
			name:    "a foreign CA with the same names",
			try:     presents(func(t *testing.T, c *cluster) *tls.Certificate { return c.equalNames(t, camera) }),
			refusal: "bad certificate",
		},
		{
			name: "a certificate that has ended",
			try: presents(func(t *testing.T, c *cluster) *tls.Certificate {
				by := &kit.CA{Issuing: kit.OddIssuing(c.root(t), kit.NewKey())}
				return by.IssueAt(camera, time.Now().Add(-time.Minute), time.Now().Add(-30*time.Second))
			}),
			refusal: "bad certificate",
		},
		{
			name:    "a certificate that is revoked",
			try:     func(t *testing.T, c *cluster) error { return c.revokedCamera(t) },
			refusal: "bad certificate",
		},
		{
			name: "a PROXY header of a stranger's own",
			try: func(t *testing.T, c *cluster) error {
				line, err := c.tell("66", 2525, forged)
				if err != nil || strings.Contains(line, "198.51.100.1") {
					return err
				}
				return errors.New(line) // what the service was told
			},
			refusal: ".0.66:",
		},
		{
			name: "more connections than an address may have",
			try: func(t *testing.T, c *cluster) error {
				for range 2 {
					// The host may not have seen yet that the connection of an earlier attack was closed.
					kit.Succeeds(t, "a connection within the limit", func() error {
						conn, err := c.stranger("66", 2525)
						if err != nil {
							return err
						}
						if _, err = bufio.NewReader(conn).ReadString('\n'); err != nil {
							return errors.Join(err, conn.Close())
						}
						t.Cleanup(func() { conn.Close() })
						return nil
					})
				}
				return reached("66", 2525)(t, c)
			},
			refusal: "reset",
		},
		{
			name:    "the server name of another service",
			try:     named("mail.example.org"),
			refusal: "unrecognized name",
		},
		{
			name:    "no server name",
			try:     named(""),
			refusal: "unrecognized name",
		},
		{
			name:    "no TLS at a port for server names",
			try:     reached("65", 8883),
			refusal: "reset",
		},
		{
			name: "a ClientHello that does not end",
			try: func(t *testing.T, c *cluster) error {
				// Records of 16 KiB, all of one handshake message of almost 16 MiB.
				hello := append([]byte{22, 3, 1, 0x40, 0}, make([]byte, 1<<14)...)
				copy(hello[5:], []byte{1, 0xff, 0xff, 0xff, 3, 3})
				_, err := c.tell("65", 8883, bytes.Repeat(hello, 64))
				return err
			},
			refusal: "reset",
		},
		{
			name:    "a stranger's address stated by a node without an entry",
			try:     states(func(c *cluster) *local.Host { return c.p }, "cert-node", "198.51.100.1:1"),
			refusal: "canceled by remote with error code 2", // wire.Denied
		},
		{
			name:    "a stranger's address stated by a user of the host with the entry",
			try:     states(hostC, "cert-user-alice", "198.51.100.1:1"),
			refusal: "canceled by remote with error code 2",
		},
	})
}
