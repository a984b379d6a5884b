package whois

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"
	"net/url"
	"strconv"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/unixsock"
)

// Query asks the forwarder which caller is behind a connection to a service. From is the address of
// the caller as the service sees it. To is the service's own address of the connection, and may be
// zero.
type Query struct {
	From, To netip.AddrPort
	Protocol document.Protocol
	As       *uint32 // account that asks, if the forwarder passes on the query of another process
}

// Fetch sends a query to the forwarder that listens on a whois socket, and returns its answer. It
// returns an error if the forwarder knows no such connection or the account may not ask about it.
func Fetch(ctx context.Context, socket string, q Query) (Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	transport := unixsock.Client(socket)
	defer transport.CloseIdleConnections()
	query := url.Values{"from": {q.From.String()}, "protocol": {string(q.Protocol)}}
	if q.To.IsValid() {
		query.Set("to", q.To.String())
	}
	if q.As != nil {
		query.Set("as", strconv.FormatUint(uint64(*q.As), 10))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://agent/whois?"+query.Encode(), nil)
	if err != nil {
		return Answer{}, err
	}
	res, err := transport.RoundTrip(req)
	if err != nil {
		return Answer{}, fmt.Errorf("agent at %s: %w: is flor agent run running?", socket, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		var r refusal
		if err := json.NewDecoder(res.Body).Decode(&r); err != nil || r.Error == "" {
			return Answer{}, fmt.Errorf("agent at %s: %s", socket, res.Status)
		}
		return Answer{}, errors.New(r.Error)
	}
	var a Answer
	if err := json.NewDecoder(res.Body).Decode(&a); err != nil {
		return Answer{}, fmt.Errorf("agent at %s: %w", socket, err)
	}
	return a, nil
}
