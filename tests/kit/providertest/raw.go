package providertest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
)

// Post sends a POST request to the provider with exactly the given body. Use it for bodies that
// hostapi.Client would not send. It returns the status of the response, and an error if the
// provider refused the request. The argument key is the idempotency key of the request. The
// argument svid may be nil.
func (e *Env) Post(t *testing.T, svid *tls.Certificate, path, key string, body []byte) (int, error) {
	t.Helper()
	config := &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13}
	if svid != nil {
		config.Certificates = []tls.Certificate{*svid}
	}
	tr := &http.Transport{TLSClientConfig: config, DialContext: e.Dial, DisableKeepAlives: true}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://provider"+path, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set(hostapi.HeaderKey, key)
	resp, err := tr.RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode == http.StatusOK {
		return resp.StatusCode, nil
	}
	var refusal hostapi.Error
	if err := strictjson.Decode(b, &refusal); err != nil {
		t.Fatalf("status %d with %q: %v", resp.StatusCode, b, err)
	}
	return resp.StatusCode, &refusal
}

// Conn is a TLS connection from a node to the provider, over which a test can send any request.
type Conn struct {
	*tls.Conn
	In *bufio.Reader

	t    *testing.T
	e    *Env
	node spiffe.ID
}

// Connect opens a connection to the provider as a node with the given SVID, and closes it at the
// end of the test.
func (e *Env) Connect(t *testing.T, node spiffe.ID, svid *tls.Certificate) *Conn {
	t.Helper()
	raw, err := e.Dial(t.Context(), "tcp", "")
	if err != nil {
		t.Fatal(err)
	}
	c := tls.Client(raw, &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{*svid}})
	t.Cleanup(func() { c.Close() })
	if err := c.HandshakeContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	return &Conn{c, bufio.NewReader(c), t, e, node}
}

// Proof returns a proof for this connection that the sender has the node's host key, which signs
// the proof. If change is not nil, Proof calls it to alter the statement before signing.
func (c *Conn) Proof(change func(*hostapi.DeviceStatement)) string {
	c.t.Helper()
	state := c.ConnectionState()
	binding, err := hostapi.ChannelBinding(&state)
	if err != nil {
		c.t.Fatal(err)
	}
	st := hostapi.DeviceStatement{Node: c.node, Provider: c.e.Provider().ID, Binding: binding}
	if change != nil {
		change(&st)
	}
	proof, err := st.Sign(c.e.HostKey(c.node))
	if err != nil {
		c.t.Fatal(err)
	}
	return proof
}

// Send sends a request over the connection. If the provider refuses the request, the error is the
// refusal.
func (c *Conn) Send(req *http.Request) error {
	c.t.Helper()
	if err := req.Write(c); err != nil {
		c.t.Fatal(err)
	}
	resp, err := http.ReadResponse(c.In, req)
	if err != nil {
		c.t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode == http.StatusOK {
		var a hostapi.Answer
		if err := json.NewDecoder(resp.Body).Decode(&a); err != nil {
			c.t.Fatal(err)
		}
		return nil
	}
	var refusal hostapi.Error
	if err := json.NewDecoder(resp.Body).Decode(&refusal); err != nil {
		c.t.Fatal(err)
	}
	return &refusal
}
