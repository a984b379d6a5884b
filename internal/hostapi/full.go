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

// A provider for which too many hosts wait answers what begins a handshake in plain HTTP: status
// 503, with a Retry-After (RFC 9110 section 10.2.3) at which there is a place for this host.
// Anyone on the way can write that, so all that it does is lengthen a wait, by maxPlace at most.

const (
	// maxPlace bounds how long an answer that nobody signed can keep a host waiting, in seconds.
	maxPlace = 120

	// maxPlain is the longest such answer, in bytes.
	maxPlain = 512
)

// firstBytes is a connection that keeps the first bytes which it receives, until end.
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

// end is for a connection on which a handshake succeeded.
func (c *firstBytes) end() { c.kept, c.ended = nil, true }

// turnedAway returns the error of a host for which a provider has no place now, where that is
// what it answered instead of a handshake, which failed with an error; nil where it is not.
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
