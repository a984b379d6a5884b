// Package wire is what two forwarders send each other inside QUIC (RFC 9000),
// ALPN "florete/1".
//
// A connection is between one caller and one target, both proven by their
// X.509-SVIDs. Each TCP connection, and each UDP session, is one bidirectional stream,
// opened by the caller's side with a preamble:
//
//	offset 0  version, 1
//	offset 1  type, 1 = a TCP connection, 3 = a UDP session
//	offset 2  length of the rest, big endian, at most MaxBody
//	offset 4  SPIFFE ID of the target; of one of its several ports, ":" and the port's name
//
// So a stream to spiffe://demo.flor/service/outline opens with 01 01 00 22 and
// the 34 bytes of that ID. The caller's bytes may follow at once. The publishing
// side answers with one zero byte once the upstream is connected, and then with
// the upstream's bytes; or it refuses by resetting both directions with a Code.
//
// TCP's FIN is the stream's FIN, in each direction on its own. TCP's RST is
// RESET_STREAM and STOP_SENDING with code Reset.
//
// A UDP session is what one local address sends to the target, and what the target sends back. Its
// datagrams go in DATAGRAM frames (RFC 9221), with the stream in front: a varint (RFC
// 9000 section 16), the stream's ID divided by four, as in RFC 9297 section 2.1. A
// datagram that is too large for a frame goes over the stream, its length in front,
// two bytes, big endian; so do those that a caller sends before the answer, right
// behind the preamble. The end of either direction of the stream ends the session.
//
// Over QUIC a caller may open one unidirectional stream, and the publishing side then opens one on
// which it returns each byte, which is zero: what does not come back was lost on the way. An empty DATAGRAM
// frame means nothing, and is how a caller shows where it has migrated to.
//
// A publishing side whose next process takes over opens another one, which older callers
// do not allow, and sends Leave: the caller opens further streams on a new connection,
// and closes this one after its last. Over TCP it closes a connection, as Stopping, once the
// stream that is under way has ended.
//
// Codes are also the application error codes of CONNECTION_CLOSE.
package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/spiffe"
)

// ALPN is the protocol that both sides must negotiate.
const ALPN = "florete/1"

// MaxBody limits what follows a preamble's length, above any SPIFFE ID of ours.
const MaxBody = 512

// Connected is the publishing side's answer to a preamble that it serves.
const Connected byte = 0

// Leave is what the one unidirectional stream has. Callers ignore other bytes there.
const Leave byte = 1

const (
	version   = 1
	headerLen = 4
)

// StreamType is what a stream carries. Numbers are never reused.
type StreamType byte

const (
	TCP StreamType = 1
	UDP StreamType = 3 // 2 is among what no reader takes
)

// Preamble opens a stream.
type Preamble struct {
	Type   StreamType
	Target spiffe.ID
	Port   string // by its name, where the target has several
}

// Append adds the preamble's bytes to b. Read gives back what Append wrote.
func (p Preamble) Append(b []byte) []byte {
	target := p.Target.String()
	if p.Port != "" {
		target += ":" + p.Port
	}
	b = append(b, version, byte(p.Type))
	b = binary.BigEndian.AppendUint16(b, uint16(len(target)))
	return append(b, target...)
}

// Read takes the preamble of a stream of one of these types off r, and not a byte more.
func Read(r io.Reader, types ...StreamType) (Preamble, error) {
	var header [headerLen]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return Preamble{}, fmt.Errorf("preamble: %w", err)
	}
	if header[0] != version {
		return Preamble{}, fmt.Errorf("preamble: version %d, want %d", header[0], version)
	}
	t := StreamType(header[1])
	if !slices.Contains(types, t) {
		var want []string
		for _, w := range types {
			want = append(want, strconv.Itoa(int(w)))
		}
		return Preamble{}, fmt.Errorf("preamble: type %d, want %s", t, strings.Join(want, " or "))
	}
	n := binary.BigEndian.Uint16(header[2:])
	if n > MaxBody {
		return Preamble{}, fmt.Errorf("preamble: %d bytes, at most %d", n, MaxBody)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return Preamble{}, fmt.Errorf("preamble: %w", err)
	}
	id, port := string(body), ""
	if at := strings.LastIndexByte(id, ':'); at > strings.LastIndexByte(id, '/') {
		id, port = id[:at], id[at+1:]
		if port == "" {
			return Preamble{}, fmt.Errorf("preamble: %q names no port", body)
		}
	}
	target, err := spiffe.ParseID(id)
	if err != nil {
		return Preamble{}, fmt.Errorf("preamble: %w", err)
	}
	return Preamble{t, target, port}, nil
}
