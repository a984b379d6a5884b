package forward_test

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestIdleCloseMeetsRequest checks a service that closes its idle connection just as the next
// request comes. Callers must see a connection that ends, as at the service itself, and no answer
// that the service did not give. A request that may be repeated must be answered over another
// connection. A service that fails the first request on a connection must not get it again.
func TestIdleCloseMeetsRequest(t *testing.T) {
	upstream := agenttest.Upstream(t, func(conn *net.TCPConn) {
		r := bufio.NewReader(conn)
		for i := 0; ; i++ {
			req, err := http.ReadRequest(r)
			if err != nil || i > 0 || strings.HasPrefix(req.URL.Path, "/never") {
				return
			}
			io.Copy(io.Discard, req.Body)
			fmt.Fprint(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	c := announcing(t, upstream, document.HTTPHeaders)
	const get, post = "GET %s HTTP/1.1\r\nHost: outline\r\n\r\n", "POST %s HTTP/1.1\r\nHost: outline\r\nContent-Length: 5\r\n\r\nhello"
	for name, x := range map[string]struct {
		first, second string
		want          []string
	}{
		"a POST":         {get, post, []string{"200 ok"}},
		"a GET":          {post, get, []string{"200 ok", "200 ok"}},
		"the first POST": {"", strings.Replace(post, "%s", "/never%s", 1), []string{"502 the service does not answer\n"}},
	} {
		p := dial(t, c.Local)
		r := bufio.NewReader(p)
		var got []string
		for _, request := range []string{x.first, x.second} {
			if request == "" {
				continue
			}
			fmt.Fprintf(p, request, "/")
			res, err := http.ReadResponse(r, nil)
			if err != nil {
				break
			}
			b, err := io.ReadAll(res.Body)
			if err != nil {
				break
			}
			got = append(got, fmt.Sprintf("%d %s", res.StatusCode, b))
		}
		if fmt.Sprint(got) != fmt.Sprint(x.want) {
			t.Errorf("%s: got %q, want %q", name, got, x.want)
		}
	}
}

// TestInformational checks that an informational answer contains no header about the connection to
// the service, and that the final answer contains none that the service omitted.
func TestInformational(t *testing.T) {
	upstream := agenttest.Upstream(t, func(conn *net.TCPConn) {
		if _, err := http.ReadRequest(bufio.NewReader(conn)); err == nil {
			fmt.Fprint(conn, "HTTP/1.1 103 Early Hints\r\nConnection: keep-alive, X-Mine\r\nKeep-Alive: timeout=5\r\nX-Mine: secret\r\nLink: </style.css>\r\n\r\n"+
				"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
		}
	})
	p := dial(t, announcing(t, upstream, document.HTTPHeaders).Local)
	io.WriteString(p, "GET / HTTP/1.1\r\nHost: outline\r\nConnection: close\r\n\r\n")
	b, err := io.ReadAll(p)
	const want = "HTTP/1.1 103 Early Hints\r\nLink: </style.css>\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok"
	if err != nil || string(b) != want {
		t.Errorf("got %q, %v\nwant %q", b, err, want)
	}
}
