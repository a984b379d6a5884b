package attacks

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"github.com/pires/go-proxyproto/tlvparse"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
	"github.com/florete/florete/tests/local"
)

// serveNamed runs the services that are told who their caller is. Each service answers with the
// name of the caller that it believes to have.
func (c *cluster) serveNamed(context.Context) error {
	requests, err := c.listen("tcp", c.loopback+".0.2:8907")
	if err != nil {
		return err
	}
	go http.Serve(requests, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		fmt.Fprintf(w, "%s is for %q %q with %d bytes\n", r.URL.Path, r.Header["X-Forwarded-Client-Cert"], r.Trailer["X-Forwarded-Client-Cert"], len(body))
	}))
	bytes, err := c.listen("unix", c.socket())
	if err != nil {
		return err
	}
	if err := os.Chmod(c.socket(), 0o600); err != nil {
		return err
	}
	go kit.Accept(bytes, func(conn net.Conn) {
		r := bufio.NewReader(conn)
		h, err := proxyproto.Read(r)
		if err != nil {
			fmt.Fprintf(conn, "no caller: %v\n", err)
			return
		}
		tlvs, _ := h.TLVs()
		tls, _ := tlvparse.FindSSL(tlvs)
		cn, _ := tls.ClientCN()
		fmt.Fprintf(conn, "caller %s\n", cn)
		_ = conn.(*net.UnixConn).CloseWrite()
		_, _ = io.Copy(io.Discard, r) // unread data would reset the connection before the answer
	})
	return nil
}

// socket returns the path of the Unix socket on which the service bytes listens.
func (c *cluster) socket() string { return filepath.Join(c.sockets, "bytes.sock") }

// say sends bytes to a service as Alice, and returns the answer.
func (c *cluster) say(t *testing.T, service, text string) string {
	t.Helper()
	answer, err := c.sayAs(t, uidAlice, service, text)
	if err != nil {
		t.Fatalf("got %q, %v", answer, err)
	}
	return answer
}

// sayAs sends bytes to a service under an account of host c, and returns the answer.
func (c *cluster) sayAs(t *testing.T, uid uint32, service, text string) (string, error) {
	t.Helper()
	var conn net.Conn
	var err error
	agenttest.As(t, uid, func() { conn, err = net.Dial("tcp", c.listener(t, service)) })
	if err != nil {
		return "", err
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(local.Limit))
	if _, err := io.WriteString(conn, text); err != nil {
		return "", err
	}
	b, err := io.ReadAll(conn)
	return string(b), err
}

// TestNamed attacks services that are told who their caller is. The attackers are Alice and other
// accounts of host b, and they pretend to be Bob.
func TestNamed(t *testing.T) {
	const (
		as   = "can run processes of another user"
		bob  = "X-Forwarded-Client-Cert: URI=spiffe://demo.flor/user/bob\r\n"
		host = "Host: requests\r\n"
		end  = "Connection: close\r\n\r\n"
	)
	smuggled := "GET /admin HTTP/1.1\r\n" + host + bob + end
	// believed returns an error for a refused attack, and nil if a service takes a caller for Bob.
	believed := func(answer string) error {
		if strings.Contains(answer, "user/bob") {
			return nil
		}
		return errors.New(answer)
	}
	requests := func(text string) func(*testing.T, *cluster) error {
		return func(t *testing.T, c *cluster) error { return believed(c.say(t, "requests", text)) }
	}
	run(t, []attack{
		{
			name:    "a header of her own",
			try:     requests("GET / HTTP/1.1\r\n" + host + bob + strings.ToLower(bob) + end),
			refusal: "/ is for [\"By=spiffe://demo.flor/service/requests;Hash=", root: as,
		},
		{
			name:    "a header of her own in the second request",
			try:     requests("GET /one HTTP/1.1\r\n" + host + "\r\nGET /two HTTP/1.1\r\n" + host + bob + end),
			refusal: "/two is for [\"By=spiffe://demo.flor/service/requests;Hash=", root: as,
		},
		{
			name:    "a header of her own in a trailer",
			try:     requests("POST / HTTP/1.1\r\n" + host + "Transfer-Encoding: chunked\r\nTrailer: X-Forwarded-Client-Cert\r\nConnection: close\r\n\r\n0\r\n" + bob + "\r\n"),
			refusal: "] [] with 0 bytes", root: as,
		},
		{
			name:    "the forwarder's header declared as hers",
			try:     requests("GET / HTTP/1.1\r\n" + host + "Connection: close, X-Forwarded-Client-Cert\r\n\r\n"),
			refusal: ";URI=spiffe://demo.flor/user/alice\"]", root: as,
		},
		{
			name:    "a request in the body of another, by length and chunks",
			try:     requests("POST / HTTP/1.1\r\n" + host + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n" + fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(smuggled), smuggled)),
			refusal: "/ is for [\"By=spiffe://demo.flor/service/requests;Hash=", root: as,
		},
		{
			name:    "a request in the body of another, by two lengths",
			try:     requests("POST / HTTP/1.1\r\n" + host + fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(smuggled), smuggled)),
			refusal: "400 Bad Request", root: as,
		},
		{
			name:    "a request behind an upgrade to HTTP/2",
			try:     requests("GET /up HTTP/1.1\r\n" + host + "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n\r\n" + smuggled),
			refusal: "/admin is for [\"By=spiffe://demo.flor/service/requests;Hash=", root: as,
		},
		{
			name:    "a tunnel",
			try:     requests("CONNECT requests:80 HTTP/1.1\r\n" + host + "\r\n" + smuggled),
			refusal: "501 Not Implemented", root: as,
		},
		{
			name: "a PROXY header of her own",
			try: func(t *testing.T, c *cluster) error {
				header := proxyproto.HeaderProxyFromAddrs(2, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 2), Port: 2})
				name := []proxyproto.TLV{{Type: proxyproto.PP2_SUBTYPE_SSL_VERSION, Value: []byte("TLSv1.3")}, {Type: proxyproto.PP2_SUBTYPE_SSL_CN, Value: []byte("spiffe://demo.flor/user/bob")}}
				tls, err := tlvparse.PP2SSL{Client: 7, TLV: name}.Marshal()
				if err == nil {
					err = header.SetTLVs([]proxyproto.TLV{tls})
				}
				b, errFormat := header.Format()
				if err := errors.Join(err, errFormat); err != nil {
					t.Fatal(err)
				}
				return believed(c.say(t, "bytes", string(b)))
			},
			refusal: "caller spiffe://demo.flor/user/alice", root: as,
		},
		{
			name: "another account of b at the service's socket",
			try: func(t *testing.T, c *cluster) (err error) {
				agenttest.As(t, uidStranger, func() {
					var conn net.Conn
					if conn, err = net.Dial("unix", c.socket()); err == nil {
						conn.Close()
					}
				})
				return err
			},
			refusal: "permission denied", root: as,
		},
	})
}
