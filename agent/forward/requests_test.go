package forward_test

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// backend starts a service with a handler.
func backend(t *testing.T, h http.HandlerFunc) (*cluster, *httptest.Server) {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return announcing(t, strings.TrimPrefix(s.URL, "http://"), document.HTTPHeaders), s
}

// showHeaders answers with the headers that the service got.
func showHeaders(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	fmt.Fprintf(w, "%s %s %s\n", r.Method, r.RequestURI, r.Host)
	_ = r.Header.Write(w)
	_ = r.Trailer.Write(w)
	fmt.Fprintf(w, "\n%s", body)
}

// talk writes bytes on a connection of alice, and returns at most n answers to them. If n is
// unknown, it returns those that come without a pause.
func talk(t *testing.T, c *cluster, requests string, n int) (answers []string) {
	t.Helper()
	p := dial(t, c.Local)
	if _, err := io.WriteString(p, requests); err != nil {
		t.Fatal(err)
	}
	r := bufio.NewReader(p)
	for len(answers) != n {
		if n == unknown {
			p.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return answers
		}
		b, err := io.ReadAll(res.Body)
		if err != nil {
			return answers
		}
		answers = append(answers, fmt.Sprintf("%d %s", res.StatusCode, b))
	}
	return answers
}

const unknown = -1

// named checks that an answer of showHeaders has alice's headers exactly once.
func named(t *testing.T, c *cluster, answer string) {
	t.Helper()
	leaf := c.Laptop.Identities(t).SVID(alice).Cert.Leaf
	want := fmt.Sprintf("X-Forwarded-Client-Cert: By=%s;Hash=%x;URI=%s\r\n", outline, sha256.Sum256(leaf.Raw), alice)
	head, _, _ := strings.Cut(answer, "\n\n")
	plain := strings.NewReplacer("_", "-", ".", "-").Replace(strings.ToLower(head))
	if !strings.Contains(answer, want) || strings.Count(plain, "x-forwarded-client-cert") != 1 {
		t.Errorf("got\n%swant once %q", answer, want)
	}
	if !strings.Contains(answer, "X-Forwarded-For: 127.") || strings.Count(plain, "x-forwarded-for") != 1 || strings.Contains(plain, "\nforwarded:") || strings.Contains(head, "198.51.100.1") {
		t.Errorf("got\n%swant the address of alice's forwarder, once", answer)
	}
}

// TestRequestsAreNamed checks that each request on a kept-alive connection names the caller,
// whatever headers it claims.
func TestRequestsAreNamed(t *testing.T) {
	c, _ := backend(t, showHeaders)
	claims := []string{
		"",
		"X-Forwarded-Client-Cert: URI=" + bob.String(),
		"x-forwarded-client-cert: URI=" + bob.String() + "\r\nX-FORWARDED-CLIENT-CERT: URI=" + bob.String(),
		"X_Forwarded_Client_Cert: URI=" + bob.String(),
		"X.Forwarded.Client.Cert: URI=" + bob.String(),
		"X-Forwarded-For: 198.51.100.1",
		"X_FORWARDED_FOR: 198.51.100.1\r\nForwarded: for=198.51.100.1",
		"True-Client-IP: 198.51.100.1\r\nCF_Connecting_IP: 198.51.100.1\r\nx-client-ip: 198.51.100.1\r\nX-Original-Forwarded-For: 198.51.100.1",
		"Connection: X-Forwarded-Client-Cert, X-Forwarded-For",
		"Connection: keep-alive, x-forwarded-client-cert\r\nX-Forwarded-Client-Cert: URI=" + bob.String(),
	}
	var requests strings.Builder
	for i, claim := range claims {
		if claim != "" {
			claim += "\r\n"
		}
		fmt.Fprintf(&requests, "GET /%d HTTP/1.1\r\nHost: outline\r\n%sX-Forwarded-Proto: https\r\n\r\n", i, claim)
	}
	answers := talk(t, c, requests.String(), len(claims))
	if len(answers) != len(claims) {
		t.Fatalf("got %d answers to %d requests: %q", len(answers), len(claims), answers)
	}
	for i, a := range answers {
		if !strings.HasPrefix(a, fmt.Sprintf("200 GET /%d outline\n", i)) || !strings.Contains(a, "X-Forwarded-Proto: https\r\n") {
			t.Errorf("got %s", a)
		}
		named(t, c, a)
	}
}

// TestHostileBytes sends bytes that forwarder and service may interpret differently. Everything
// that the service takes for a request must name alice.
func TestHostileBytes(t *testing.T) {
	forged := "GET /admin HTTP/1.1\r\nHost: outline\r\nX-Forwarded-Client-Cert: URI=" + bob.String() + "\r\n\r\n"
	chunk := fmt.Sprintf("%x\r\n%s\r\n0\r\n\r\n", len(forged), forged)
	head := "POST / HTTP/1.1\r\nHost: outline\r\n"
	var reached atomic.Int64
	c, _ := backend(t, func(w http.ResponseWriter, r *http.Request) {
		reached.Add(1)
		if got := r.Header.Values("X-Forwarded-Client-Cert"); len(got) != 1 || !strings.HasSuffix(got[0], ";URI="+alice.String()) {
			t.Errorf("the service got %s %s with %q", r.Method, r.URL, got)
		}
		showHeaders(w, r)
		if got := r.Trailer.Values("X-Forwarded-Client-Cert"); len(got) > 0 {
			t.Errorf("the service got %s %s with the trailer %q", r.Method, r.URL, got)
		}
	})
	rows := map[string]string{
		"length and chunks":              head + "Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
		"chunks and length":              head + "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n\r\n" + chunk,
		"two lengths":                    head + fmt.Sprintf("Content-Length: 0\r\nContent-Length: %d\r\n\r\n%s", len(forged), forged),
		"a list of lengths":              head + fmt.Sprintf("Content-Length: 0, %d\r\n\r\n%s", len(forged), forged),
		"a signed length":                head + fmt.Sprintf("Content-Length: +%d\r\n\r\n%s", len(forged), forged),
		"a length in hexadecimal":        head + fmt.Sprintf("Content-Length: 0x%x\r\n\r\n%s", len(forged), forged),
		"chunks by another name":         head + "Transfer-Encoding: xchunked\r\n\r\n" + chunk,
		"chunks twice":                   head + "Transfer-Encoding: chunked\r\nTransfer-Encoding: identity\r\n\r\n" + chunk,
		"chunks behind a tab":            head + "Transfer-Encoding:\tchunked\r\n\r\n" + chunk,
		"chunks behind a form feed":      head + "Transfer-Encoding: \x0bchunked\r\n\r\n" + chunk,
		"chunks with a blank before":     head + "Transfer-Encoding : chunked\r\n\r\n" + chunk,
		"chunks in a folded line":        head + "Transfer-Encoding:\r\n chunked\r\n\r\n" + chunk,
		"a header in a folded line":      head + "X: y\r\n X-Forwarded-Client-Cert: URI=" + bob.String() + "\r\n\r\n",
		"a bare carriage return":         head + "X: y\rX-Forwarded-Client-Cert: URI=" + bob.String() + "\r\n\r\n",
		"a bare line feed":               head + "X: y\nX-Forwarded-Client-Cert: URI=" + bob.String() + "\r\n\r\n",
		"headers without end":            head + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 100) + "\r\n" + forged,
		"a null byte":                    head + "X: y\x00\r\nX-Forwarded-Client-Cert\x00: URI=" + bob.String() + "\r\n\r\n",
		"a line feed in a chunk's size":  head + "Transfer-Encoding: chunked\r\n\r\n5;\nx\r\n" + chunk,
		"a chunk that is too large":      head + "Transfer-Encoding: chunked\r\n\r\nffffffffffffffff1\r\n" + chunk,
		"a negative chunk":               head + "Transfer-Encoding: chunked\r\n\r\n-1\r\n" + chunk,
		"a header as a trailer":          head + "Transfer-Encoding: chunked\r\nTrailer: X-Forwarded-Client-Cert\r\n\r\n0\r\nX-Forwarded-Client-Cert: URI=" + bob.String() + "\r\n\r\n",
		"a trailer that is not told":     head + "Transfer-Encoding: chunked\r\n\r\n0\r\nX-Forwarded-Client-Cert: URI=" + bob.String() + "\r\n\r\n",
		"a body of a GET":                "GET / HTTP/1.1\r\nHost: outline\r\nContent-Length: " + fmt.Sprint(len(forged)) + "\r\n\r\n" + forged,
		"chunks in HTTP/1.0":             "POST / HTTP/1.0\r\nConnection: keep-alive\r\nTransfer-Encoding: chunked\r\n\r\n" + chunk,
		"no protocol":                    "GET /\r\n" + forged,
		"HTTP/2 at once":                 "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + forged,
		"a tunnel":                       "CONNECT outline:80 HTTP/1.1\r\nHost: outline\r\n\r\n" + forged,
		"an upgrade to HTTP/2":           "GET / HTTP/1.1\r\nHost: outline\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n\r\n" + forged,
		"an upgrade that is refused":     "GET / HTTP/1.1\r\nHost: outline\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 777\r\n\r\n" + forged,
		"a line break in the target":     "GET /%0d%0aX-Forwarded-Client-Cert:%20URI HTTP/1.1\r\nHost: outline\r\n\r\n",
		"a blank in the target":          "GET /x HTTP/1.1\r\nX: y HTTP/1.1\r\nHost: outline\r\n\r\n",
		"another host in the target":     "GET http://admin/ HTTP/1.1\r\nHost: outline\r\n\r\n",
		"an answer that is not awaited":  head + "Expect: 100-continue\r\nContent-Length: 4\r\n\r\n" + forged,
		"a connection header of its own": "GET / HTTP/1.1\r\nHost: outline\r\nConnection: close, Host, X-Forwarded-Client-Cert\r\n\r\n" + forged,
	}
	t.Run("each", func(t *testing.T) {
		for name, bytes := range rows {
			t.Run(strings.ReplaceAll(name, " ", "-"), func(t *testing.T) {
				t.Parallel()
				talk(t, c, bytes, unknown)
			})
		}
	})
	if n := reached.Load(); n < 10 {
		t.Errorf("the service was reached %d times", n)
	}
}

// TestRequestBodies checks lengths, chunks, trailers, and bodies sent in both directions at once.
func TestRequestBodies(t *testing.T) {
	const size = 8 << 20 // more than the window of a stream grows to
	page := 480 << 10    // fits in a stream's window, and not in buffers of the kernel
	if agenttest.Transport == document.OverTCP {
		page = 96 << 10 // there are no others
	}
	large := bytes.Repeat([]byte("0123456789abcdef"), size/16)
	c, _ := backend(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/large":
			sum := sha256.New()
			n, err := io.Copy(sum, r.Body)
			w.Header().Set("Trailer", "Sum")
			fmt.Fprintf(w, "%d %v", n, err)
			w.Header().Set("Sum", fmt.Sprintf("%x%s", sum.Sum(nil), r.Trailer.Get("Mine")))
			w.Header().Set(http.TrailerPrefix+"Late", "yes")
		case "/download":
			w.Write(large)
		case "/page":
			w.Write(large[:page])
		case "/echo":
			rc := http.NewResponseController(w)
			rc.EnableFullDuplex()
			rc.Flush()
			for b := make([]byte, 5); ; {
				if _, err := io.ReadFull(r.Body, b); err != nil {
					return
				}
				w.Write(b)
				rc.Flush()
			}
		case "/hints":
			w.Header().Set("Link", "</style.css>")
			w.WriteHeader(http.StatusEarlyHints)
			w.WriteHeader(http.StatusNoContent)
		case "/early":
			w.WriteHeader(http.StatusRequestEntityTooLarge)
		default:
			showHeaders(w, r)
		}
	})
	client := &http.Client{Timeout: kit.Patience, Transport: &http.Transport{DisableCompression: true}}
	url := "http://" + c.Local
	t.Run("up", func(t *testing.T) {
		for _, chunked := range []bool{false, true} {
			req, _ := http.NewRequest("POST", url+"/large", bytes.NewReader(large))
			if chunked {
				req.ContentLength = -1
				req.Trailer = http.Header{"Mine": {"hello"}}
			}
			res, err := client.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			b, err := io.ReadAll(res.Body)
			want := fmt.Sprintf("%x", sha256.Sum256(large))
			if chunked {
				want += "hello"
			}
			if err != nil || string(b) != fmt.Sprint(size, " <nil>") || res.Trailer.Get("Sum") != want || res.Trailer.Get("Late") != "yes" {
				t.Errorf("chunked %v: got %q and %v, %v", chunked, b, res.Trailer, err)
			}
		}
	})
	t.Run("down", func(t *testing.T) {
		res, err := client.Get(url + "/download")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(res.Body)
		if err != nil || !bytes.Equal(b, large) {
			t.Errorf("got %d bytes, %v", len(b), err)
		}
	})
	t.Run("to a slow reader", func(t *testing.T) {
		carried := func() int64 { return report(t, c.Ursula).Paths[0].Received }
		before := carried()
		p := dial(t, c.Local)
		io.WriteString(p, "GET /page HTTP/1.1\r\nHost: outline\r\nConnection: close\r\n\r\n")
		kit.Eventually(t, "the service to have answered", func() bool { return carried()-before > int64(page) })
		if n, err := io.Copy(io.Discard, p); n < int64(page) || err != nil {
			t.Errorf("got %d bytes of %d, %v", n, page, err)
		}
	})
	t.Run("both at once", func(t *testing.T) {
		r, w := io.Pipe()
		req, _ := http.NewRequest("POST", url+"/echo", r)
		res, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			if _, err := io.WriteString(w, "hello"); err != nil {
				t.Fatal(err)
			}
			b := make([]byte, 5)
			if _, err := io.ReadFull(res.Body, b); err != nil || string(b) != "hello" {
				t.Fatalf("got %q, %v", b, err)
			}
		}
		w.Close()
		if b, err := io.ReadAll(res.Body); err != nil || len(b) > 0 {
			t.Errorf("got %q, %v, want the end", b, err)
		}
	})
	t.Run("hints come first", func(t *testing.T) {
		p := dial(t, c.Local)
		io.WriteString(p, "GET /hints HTTP/1.1\r\nHost: outline\r\n\r\n")
		r := textproto.NewReader(bufio.NewReader(p))
		for _, want := range []string{"HTTP/1.1 103 Early Hints", "Link: </style.css>", "", "HTTP/1.1 204 No Content"} {
			if line, err := r.ReadLine(); err != nil || line != want {
				t.Errorf("got %q, %v, want %q", line, err, want)
			}
		}
	})
	t.Run("continue", func(t *testing.T) {
		p := dial(t, c.Local)
		io.WriteString(p, "POST /early HTTP/1.1\r\nHost: outline\r\nExpect: 100-continue\r\nContent-Length: 1000\r\n\r\n")
		line, err := textproto.NewReader(bufio.NewReader(p)).ReadLine()
		if err != nil || !strings.Contains(line, " 413 ") {
			t.Errorf("got %q, %v, want the service's refusal instead of 100", line, err)
		}
	})
	t.Run("nothing is made up", func(t *testing.T) {
		raw := agenttest.Upstream(t, func(conn *net.TCPConn) {
			if req, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
				fmt.Fprintf(conn, "HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s", len(req.RequestURI), req.RequestURI)
			}
		})
		p := dial(t, announcing(t, raw, document.HTTPHeaders).Local)
		const target = "//a;b/%2f/../?c;d=%zz&"
		io.WriteString(p, "GET "+target+" HTTP/1.1\r\nHost: outline\r\nConnection: close\r\n\r\n")
		b, err := io.ReadAll(p)
		if want := fmt.Sprintf("HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s", len(target), target); err != nil || string(b) != want {
			t.Errorf("got %q, %v", b, err)
		}
	})
}

// TestWebSocket checks that after the upgrade bytes are carried unchanged, and that each side sees
// the end of the other.
func TestWebSocket(t *testing.T) {
	c, _ := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Upgrade") == "" {
			showHeaders(w, r)
			return
		}
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		fmt.Fprintf(rw, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: %s\r\nGot: %s\r\n\r\n", r.Header.Get("Upgrade"), r.Header.Get("X-Forwarded-Client-Cert"))
		rw.Flush()
		io.Copy(conn, io.LimitReader(rw, 11))
	})
	p := dial(t, c.Local)
	io.WriteString(p, "GET /ws HTTP/1.1\r\nHost: outline\r\nConnection: keep-alive, Upgrade\r\nUpgrade: websocket\r\nX-Forwarded-Client-Cert: URI="+bob.String()+"\r\n\r\n")
	r := bufio.NewReader(p)
	res, err := http.ReadResponse(r, nil)
	if err != nil || res.StatusCode != http.StatusSwitchingProtocols || !strings.HasSuffix(res.Header.Get("Got"), ";URI="+alice.String()) {
		t.Fatalf("got %+v, %v", res, err)
	}
	for _, text := range []string{"hello", "you", "all"} {
		io.WriteString(p, text)
		b := make([]byte, len(text))
		if _, err := io.ReadFull(r, b); err != nil || string(b) != text {
			t.Fatalf("got %q, %v", b, err)
		}
	}
	if b, err := io.ReadAll(r); err != nil || len(b) > 0 {
		t.Errorf("got %q, %v, want the end that the service made", b, err)
	}
	answers := talk(t, c, "GET / HTTP/1.1\r\nHost: outline\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n", 1)
	if len(answers) != 1 || !strings.HasPrefix(answers[0], "200 ") || strings.Contains(answers[0], "Upgrade") {
		t.Errorf("an upgrade to HTTP/2: got %q, want an answer to the request as it is", answers)
	}
}

// TestServiceEndsConnections covers a service that ends connections between two requests, before
// the first and in the middle of an answer.
func TestServiceEndsConnections(t *testing.T) {
	c, s := backend(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/cut" {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			rw.WriteString("HTTP/1.0 200 OK\r\n\r\nhalf")
			rw.Flush()
			conn.(*net.TCPConn).SetLinger(0)
			conn.Close()
			return
		}
		showHeaders(w, r)
	})
	p := dial(t, c.Local)
	r := bufio.NewReader(p)
	get := func(path string) (string, error) {
		if _, err := io.WriteString(p, "GET "+path+" HTTP/1.1\r\nHost: outline\r\n\r\n"); err != nil {
			return "", err
		}
		res, err := http.ReadResponse(r, nil)
		if err != nil {
			return "", err
		}
		b, err := io.ReadAll(res.Body)
		return string(b), err
	}
	kit.Eventually(t, "the connection to the service", func() bool { return report(t, c.Ursula).Connections > 0 })
	time.Sleep(20 * time.Millisecond)
	for range 3 {
		s.CloseClientConnections()
		b, err := get("/")
		if err != nil {
			t.Fatal(err)
		}
		named(t, c, b)
	}
	for _, version := range []string{"1.0", "1.1"} { // with 1.0, the answer ends with the connection
		p := dial(t, c.Local)
		io.WriteString(p, "GET /cut HTTP/"+version+"\r\nHost: outline\r\n\r\n")
		if b, err := io.ReadAll(p); err == nil {
			t.Errorf("half an answer ends with %q, want a reset", b)
		}
	}
	s.Close()
	wantRefused(t, c.Local)
}

// TestRequestsGiveBack checks that streams of requests leave nothing behind.
func TestRequestsGiveBack(t *testing.T) {
	c, _ := backend(t, showHeaders)
	for range 50 {
		if answers := send1(t, c); !strings.HasPrefix(answers, "HTTP/1.1 200") {
			t.Fatalf("got %q", answers)
		}
	}
	kit.Eventually(t, "streams to end", func() bool { return report(t, c.Ursula).Connections == 0 })
}

func send1(t *testing.T, c *cluster) string {
	t.Helper()
	p := dial(t, c.Local)
	defer p.Close()
	io.WriteString(p, "GET / HTTP/1.1\r\nHost: outline\r\nConnection: close\r\n\r\n")
	b, err := io.ReadAll(p)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
