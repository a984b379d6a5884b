package hostapi

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strconv"
)

// A provider that has no room for more hosts answers the first bytes of a TLS handshake with a
// plain HTTP response. Its status is 503, and it has the header Retry-After (RFC 9110, section
// 10.2.3). The response is not authenticated, so the host lets it lengthen a delay by at most
// maxPlace.

const (
	// maxPlace is the longest delay in seconds that an unauthenticated response can impose.
	maxPlace = 120

	// maxPlain is the maximum length of an unauthenticated response in bytes.
	maxPlain = 512
)

// firstBytes is a connection that records the first bytes that it receives, until end is called.
// They show whether a provider answered a TLS handshake with a plain HTTP response.
type firstBytes struct {
	net.Conn
	kept  []byte
	ended bool
}

func (c *firstBytes) Read(b []byte) (int, error) {
	n, err := c.Conn.Read(b)
	if !c.ended {
		c.kept = append(c.kept, b[:min(n, maxPlain-len(c.kept))]...)
	}
	return n, err
}

// end stops the recording. It is called when the handshake has succeeded.
func (c *firstBytes) end() { c.kept, c.ended = nil, true }

// turnedAway returns an error that asks the host to come back later, if the recorded bytes are an
// HTTP response with this meaning. Otherwise it returns nil. The argument failed is the error of
// the handshake.
func (c *firstBytes) turnedAway(failed error) error {
	if other := (tls.RecordHeaderError{}); !errors.As(failed, &other) {
		return nil
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(c.kept)), nil)
	if err != nil {
		return nil
	}
	resp.Body.Close()
	after, err := strconv.Atoi(resp.Header.Get("Retry-After"))
	if err != nil || after <= 0 || resp.StatusCode != http.StatusServiceUnavailable {
		return nil
	}
	e := Errorf(CodeFull, "too many hosts connect at the same time: this one has a place in %d s", after)
	e.RetryAfter = min(after, maxPlace)
	return e
}
