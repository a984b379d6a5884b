package forward_test

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/textproto"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/program"
)

// mail is a message as a mail server has received it.
type mail struct {
	client   string // address of the client, as the PROXY header states it
	caller   string // identity in the PROXY header
	tls      bool
	name     string // server name in the TLS handshake
	from, to string
	text     []byte
}

// mailServer is a mail server that reads a PROXY header before each connection, as Postfix and Exim
// can, and offers STARTTLS (RFC 5321, RFC 3207). At a port for TLS, each connection begins with TLS.
type mailServer struct {
	config   *tls.Config
	implicit bool
	received chan mail
}

// startMail starts a mail server and returns its address.
func startMail(t *testing.T, s *mailServer) string {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { ln.Close() })
	go kit.Accept(ln, func(conn net.Conn) {
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(kit.Patience))
		if err := s.serve(conn); err != nil && !errors.Is(err, io.EOF) && t.Context().Err() == nil {
			t.Errorf("mail server: %v", err)
		}
	})
	return ln.Addr().String()
}

// peeked is a connection of which a reader has read the beginning.
type peeked struct {
	net.Conn
	*bufio.Reader
}

func (r peeked) Read(b []byte) (int, error) { return r.Reader.Read(b) }

func (s *mailServer) serve(conn net.Conn) error {
	r := bufio.NewReader(conn)
	h, err := proxyproto.Read(r)
	if err != nil {
		return fmt.Errorf("PROXY header: %w", err)
	}
	m := mail{client: h.SourceAddr.(*net.TCPAddr).String()}
	tlvs, err := h.TLVs()
	if err != nil {
		return err
	}
	for _, v := range tlvs {
		if v.Type == spiffe.ProxyCaller {
			m.caller = string(v.Value)
		}
	}
	conn = peeked{conn, r}
	if s.implicit {
		if conn, err = s.encrypt(conn, &m); err != nil {
			return err
		}
	}
	c := textproto.NewConn(conn)
	if err := c.PrintfLine("220 mail.example.org ESMTP"); err != nil {
		return err
	}
	for {
		line, err := c.ReadLine()
		if err != nil {
			return err
		}
		verb, rest, _ := strings.Cut(line, " ")
		switch strings.ToUpper(verb) {
		case "EHLO":
			if m.tls {
				err = c.PrintfLine("250 mail.example.org")
			} else {
				err = c.PrintfLine("250-mail.example.org\r\n250 STARTTLS")
			}
		case "STARTTLS":
			if err = c.PrintfLine("220 go ahead"); err == nil {
				if conn, err = s.encrypt(conn, &m); err == nil {
					c = textproto.NewConn(conn)
				}
			}
		case "MAIL":
			m.from, err = rest, c.PrintfLine("250 ok")
		case "RCPT":
			m.to, err = rest, c.PrintfLine("250 ok")
		case "DATA":
			if err = c.PrintfLine("354 end with a dot"); err == nil {
				if m.text, err = c.ReadDotBytes(); err == nil {
					s.received <- m
					err = c.PrintfLine("250 queued")
				}
			}
		case "QUIT":
			return c.PrintfLine("221 bye")
		default:
			err = c.PrintfLine("500 unknown command")
		}
		if err != nil {
			return err
		}
	}
}

func (s *mailServer) encrypt(conn net.Conn, m *mail) (net.Conn, error) {
	c := tls.Server(conn, s.config)
	if err := c.Handshake(); err != nil {
		return nil, err
	}
	m.tls, m.name = true, c.ConnectionState().ServerName
	return c, nil
}

// webCertificate returns a TLS configuration with a certificate for a public name, and the path of a
// file by which clients verify it.
func webCertificate(t *testing.T, name string) (*tls.Config, string) {
	t.Helper()
	key := kit.NewKey()
	cert := kit.SelfSigned(&x509.Certificate{
		SerialNumber: big.NewInt(1), DNSNames: []string{name}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign, IsCA: true, BasicConstraintsValid: true,
	}, key)
	path := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert.Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	return &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{cert.Raw}, PrivateKey: key}}}, path
}

// TestMail checks that swaks, a mail client, delivers messages to a mail server through a public
// port: without TLS, with STARTTLS, and with TLS from the beginning at a port that several services
// share by their server names. The mail server knows the address of the client.
func TestMail(t *testing.T) {
	t.Parallel()
	command := program.Require(t, "swaks").Command
	config, roots := webCertificate(t, "smtp.example.org")
	large := make([]byte, 3<<20)
	rand.Read(large)
	attached := filepath.Join(t.TempDir(), "large")
	if err := os.WriteFile(attached, large, 0o600); err != nil {
		t.Fatal(err)
	}
	verify := []string{"--tls-verify", "--tls-ca-path", roots, "--tls-sni", "smtp.example.org"}
	for name, c := range map[string]struct {
		names []string // server names of the port
		flags []string
		large bool
	}{
		"without TLS": {},
		"STARTTLS":    {flags: append([]string{"--tls", "--attach", "@" + attached}, verify...), large: true},
		"TLS":         {flags: append([]string{"--tls-on-connect"}, verify...), names: []string{"imap.example.org", "smtp.example.org"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &mailServer{config: config, implicit: c.names != nil, received: make(chan mail, 1)}
			cluster, e := entered(t, startMail(t, s), document.TCP)
			cluster.Publish.Publish[0].Identity, cluster.Publish.Publish[0].Entrances = document.ProxyV2, []spiffe.ID{laptop}
			e.Announce, e.ServerNames = true, c.names
			cluster.acceptUrsula(t)
			cluster.acceptLaptop(t)
			cluster.start(t)
			send := func(from string, more ...string) ([]byte, error) {
				ctx, cancel := context.WithTimeout(t.Context(), kit.Patience)
				defer cancel()
				host, port, _ := net.SplitHostPort(e.Listen)
				args := []string{"--timeout", "0", "--server", host, "--port", port, "--local-interface", from, "--helo", "client.example.net", "--from", "ann@example.net", "--to", "bob@example.org", "--body", "A letter.\n.\nIts end."}
				return exec.CommandContext(ctx, command[0], slices.Concat(command[1:], args, c.flags, more)...).CombinedOutput()
			}
			const from = "127.0.0.77"
			if out, err := send(from); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			m := kit.Reads(t, "the message", s.received)
			if host, _, _ := net.SplitHostPort(m.client); host != from || m.caller != laptop.String() {
				t.Errorf("the server was told of client %s and caller %s, want %s and %s", m.client, m.caller, from, laptop)
			}
			encrypted := len(c.flags) > 0
			if m.tls != encrypted || encrypted && m.name != "smtp.example.org" {
				t.Errorf("TLS is %t with server name %q", m.tls, m.name)
			}
			if m.from != "FROM:<ann@example.net>" || m.to != "TO:<bob@example.org>" || !bytes.Contains(m.text, []byte("A letter.\n.\nIts end.")) {
				t.Errorf("from %s to %s: %.500s", m.from, m.to, m.text)
			}
			if c.large {
				text := strings.ReplaceAll(string(m.text), "\n", "")
				if !strings.Contains(text, base64.StdEncoding.EncodeToString(large)) {
					t.Error("the attachment has changed on the way")
				}
			}
			if c.names != nil {
				if out, err := send(from, "--tls-sni", "www.example.org"); err == nil {
					t.Errorf("another server name leads to the mail server:\n%s", out)
				}
			}
			if c.names == nil {
				// The header of the client comes after that of the forwarder, as an unknown command.
				_, err := send(from, "--proxy", "TCP4 198.51.100.1 198.51.100.2 25 25", "--proxy-version", "1")
				select {
				case m := <-s.received:
					if strings.HasPrefix(m.client, "198.51.100.") {
						t.Errorf("the server believes a PROXY header of the client: %+v, %v", m, err)
					}
				default:
				}
			}
		})
	}
}
