package scaffold

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/ed25519"
	"crypto/elliptic"
	"crypto/rand"
	"io"
	"net"
	"strconv"
	"strings"
	"testing"

	sshkey "golang.org/x/crypto/ssh"

	"github.com/florete/florete/internal/terminal"
)

// serveSSH returns the port of an SSH server on loopback with these keys.
func serveSSH(t *testing.T, keys ...crypto.Signer) int {
	t.Helper()
	config := &sshkey.ServerConfig{NoClientAuth: true}
	for _, k := range keys {
		signer, err := sshkey.NewSignerFromSigner(k)
		if err != nil {
			t.Fatal(err)
		}
		config.AddHostKey(signer)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			_, _, _, _ = sshkey.NewServerConn(conn, config)
			conn.Close()
		}
	}()
	return l.Addr().(*net.TCPAddr).Port
}

func TestFetchesHostKey(t *testing.T) {
	_, best, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	fingerprint := func(s crypto.Signer) string {
		key, err := sshkey.NewPublicKey(s.Public())
		if err != nil {
			t.Fatal(err)
		}
		return sshkey.FingerprintSHA256(key)
	}
	for name, c := range map[string]struct {
		has                 []crypto.Signer
		fingerprint, answer string
		want, asks          string // type of the key; what is asked, or the error
	}{
		"confirmed":         {has: []crypto.Signer{other, best}, answer: "y\n", want: "ssh-ed25519", asks: fingerprint(best)},
		"of another kind":   {has: []crypto.Signer{other}, answer: "yes\n", want: "ecdsa-sha2-nistp256", asks: "ssh_host_ecdsa_key.pub"},
		"not confirmed":     {has: []crypto.Signer{best}, answer: "\n", asks: "was not confirmed, and nothing was written"},
		"no answer":         {has: []crypto.Signer{best}, asks: "was not confirmed, and nothing was written"},
		"by fingerprint":    {has: []crypto.Signer{best}, fingerprint: fingerprint(best), want: "ssh-ed25519"},
		"wrong fingerprint": {has: []crypto.Signer{best}, fingerprint: fingerprint(other), asks: "found " + fingerprint(best) + ", want " + fingerprint(other)},
	} {
		t.Run(name, func(t *testing.T) {
			var asked strings.Builder
			ask := terminal.Console{In: strings.NewReader(c.answer), Err: &asked}
			// The port of an address is the forwarder's.
			got, err := KeySource{Fingerprint: c.fingerprint, Port: serveSSH(t, c.has...)}.Get(ask, Host{Name: "forge", Addresses: []string{"127.0.0.1:4610"}})
			if c.want == "" {
				if err == nil || !strings.Contains(err.Error(), c.asks) {
					t.Fatalf("got %v, want an error with %q", err, c.asks)
				}
				return
			}
			if err != nil || !strings.HasPrefix(got, c.want+" ") || len(strings.Fields(got)) != 2 || !strings.Contains(asked.String(), c.asks) {
				t.Errorf("got %q, %v, asked %q; want a key of type %s, and %q", got, err, asked.String(), c.want, c.asks)
			}
		})
	}
}

// TestNoHostKey checks servers that speak another protocol, or do not answer.
func TestNoHostKey(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if conn, err := l.Accept(); err == nil {
			_, _ = io.WriteString(conn, "HTTP/1.1 400 Bad Request\r\n\r\n")
			conn.Close()
		}
	}()
	port := l.Addr().(*net.TCPAddr).Port
	for range 2 {
		if key, err := fetchHostKey("127.0.0.1:" + strconv.Itoa(port)); err == nil {
			t.Errorf("got key %v, want an error", key)
		}
		l.Close()
	}
}
