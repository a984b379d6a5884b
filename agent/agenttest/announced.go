package agenttest

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/netip"
	"testing"

	"github.com/florete/florete/agent/forward/announce"
	"github.com/florete/florete/internal/spiffe"
)

// Announced is the address of a Unix socket of a service. On this socket, the forwarder tells the
// service the identities of its callers. A test uses Announced to call the service in the
// forwarder's place.
type Announced struct {
	Socket  string
	Service spiffe.ID
}

// Dial connects to the service and sends the header with which the forwarder announces a caller.
// The header contains the SPIFFE ID of the caller.
func (a Announced) Dial(caller spiffe.ID) (net.Conn, error) {
	b, err := announce.Caller{ID: caller, Service: a.Service, From: netip.MustParseAddrPort("192.0.2.7:4610"), To: netip.MustParseAddrPort("192.0.2.1:4610")}.ProxyHeader()
	if err != nil {
		return nil, err
	}
	c, err := net.Dial("unix", a.Socket)
	if err == nil {
		_, err = c.Write(b)
	}
	return c, err
}

// Do sends an HTTP request to the service and announces the given caller. It returns the status and
// the body of the response.
func (a Announced) Do(t *testing.T, caller spiffe.ID, r *http.Request) (int, []byte) {
	t.Helper()
	client := http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext:       func(context.Context, string, string) (net.Conn, error) { return a.Dial(caller) },
	}}
	answer, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, b
}
