package outbound

import (
	"bytes"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"strings"
	"time"
)

// helloTimeout is the time that a stranger has to send the first message of its TLS handshake.
const helloTimeout = 10 * time.Second

// unrecognizedName is a TLS record with the fatal alert unrecognized_name (RFC 6066, section 3).
var unrecognizedName = []byte{21, 3, 3, 0, 2, 2, 112}

// serverName reads the first message of a TLS handshake and returns the server name in it, in lower
// case. The name may be empty. The bytes are kept and sent to the service like other early bytes.
// serverName returns false if the caller does not begin with a TLS handshake.
func (e *early) serverName() (name string, ok bool) {
	e.conn.SetReadDeadline(time.Now().Add(helloTimeout))
	defer e.conn.SetReadDeadline(time.Time{})
	for len(e.kept) < maxEarly {
		had := len(e.kept)
		n, err := e.conn.Read(e.buf[had:])
		e.kept = e.buf[:had+n]
		if hello, more := parseHello(e.kept); hello != nil {
			return strings.ToLower(hello.ServerName), true
		} else if !more || err != nil {
			return "", false
		}
	}
	return "", false
}

// parseHello parses the first message of a TLS handshake from the first bytes of a connection. It
// returns nil if the message is incomplete or not valid. The result more is then true if further
// bytes could complete the message.
func parseHello(b []byte) (hello *tls.ClientHelloInfo, more bool) {
	r := &opening{Reader: bytes.NewReader(b)}
	_ = tls.Server(r, &tls.Config{GetConfigForClient: func(h *tls.ClientHelloInfo) (*tls.Config, error) {
		hello = h
		return nil, errors.New("seen")
	}}).Handshake()
	return hello, r.ended
}

// opening is a net.Conn from which only the first bytes of a connection can be read.
type opening struct {
	*bytes.Reader
	net.Conn      // nil
	ended    bool // all bytes were read
}

func (o *opening) Read(b []byte) (int, error) {
	n, err := o.Reader.Read(b)
	if err == io.EOF {
		o.ended = true
	}
	return n, err
}

func (*opening) Write(b []byte) (int, error)      { return len(b), nil }
func (*opening) Close() error                     { return nil }
func (*opening) SetDeadline(time.Time) error      { return nil }
func (*opening) SetReadDeadline(time.Time) error  { return nil }
func (*opening) SetWriteDeadline(time.Time) error { return nil }
func (*opening) LocalAddr() (a net.Addr)          { return a }
func (*opening) RemoteAddr() (a net.Addr)         { return a }
