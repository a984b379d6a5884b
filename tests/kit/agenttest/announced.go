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

// Announced is a service that learns the SPIFFE IDs of its callers from the forwarder, with the
// Unix socket on which it listens. A test calls the service through Announced instead of through a
// forwarder.
type Announced struct {
	Socket  string
	Service spiffe.ID
}

// Dial connects to the service and sends the PROXY protocol header with which the forwarder would
// announce the given caller.
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

// Do sends an HTTP request to the service on behalf of the given caller, and returns the status
// code and the body of the response.
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
