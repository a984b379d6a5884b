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

// A provider that has no room for more hosts answers the first bytes of a handshake with a plain
// HTTP response: status 503 with Retry-After (RFC 9110, section 10.2.3). The response is not
// authenticated, so it can only lengthen a delay, by at most maxPlace.

const (
	// maxPlace bounds the delay that an unauthenticated response can impose, in seconds.
	maxPlace = 120

	// maxPlain is the maximum length of such a response, in bytes.
	maxPlain = 512
)

// firstBytes is a connection that records the first bytes it receives, until end is called.
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

// end stops recording, after the handshake has succeeded.
func (c *firstBytes) end() { c.kept, c.ended = nil, true }

// turnedAway returns the error of a host that was told to come back later, if the recorded bytes
// are such a response. failed is the error of the handshake. It returns nil for any other failure.
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
