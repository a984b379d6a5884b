// Package wire defines the protocol between two forwarders inside QUIC (RFC 9000), ALPN
// "florete/1".
//
// A connection is between one caller and one target, both proven by their X.509-SVIDs. Each TCP
// connection and each UDP session is one bidirectional stream, which the caller's side opens with a
// preamble:
//
//	offset 0  version, 1
//	offset 1  type, 1 = a TCP connection, 3 = a UDP session
//	offset 2  length of the rest, big endian, at most MaxBody
//	offset 4  SPIFFE ID of the target; for a named port followed by ":" and the port's name
//
// A stream to spiffe://demo.flor/service/outline therefore begins with 01 01 00 22 and the 34 bytes
// of that ID. The caller's bytes may follow at once. The publishing side answers with one zero byte
// once the upstream is connected, followed by the upstream's bytes, or refuses the stream by
// resetting both directions with a Code.
//
// A FIN of TCP is the FIN of the stream, separately in each direction. An RST of TCP is
// RESET_STREAM and STOP_SENDING with code Reset.
//
// A UDP session consists of the datagrams that one local address sends to the target, and those
// that the target sends back. Datagrams are sent in DATAGRAM frames (RFC 9221), prefixed by the ID
// of the stream divided by four, as a varint (RFC 9000, section 16; compare RFC 9297, section 2.1).
// A datagram that is too large for a frame is sent on the stream, prefixed by its length in two
// bytes, big endian. So are datagrams that the caller sends before the answer, directly after the
// preamble. The end of either direction of the stream ends the session.
//
// Over QUIC a caller may open one unidirectional stream. The publishing side then opens one on
// which it returns every byte of it, all zero; a byte that does not come back was lost. An empty
// DATAGRAM frame has no meaning; a caller sends it to show its new address after a migration.
//
// During a handover, the publishing side opens a further unidirectional stream, which older callers
// do not allow, and sends Leave on it. The caller then opens new streams on a new connection, and
// closes this one after its last stream. Over TCP, the publishing side closes the connection with
// Stopping after the current stream has ended.
//
// A relay is called like a service: the target of the connection is its vertex, and the caller is a
// node, or the vertex of another relay. On it, a stream of type 4 has as body the label of a route,
// which the relay looks up. The relay joins the stream to one that it opens to the target's host, or
// to the next relay, and answers with one zero byte. What follows is a connection as over TCP
// (ALPNOverTCP) between the caller's and the target's forwarder, which the relay cannot read.
//
// An uplink is a connection by which a host makes itself reachable at a relay. The host connects as
// its node to the relay's vertex, with ALPNUplink. The relay opens its streams, which have no
// preamble and no answer.
//
// Two hosts that a relay knows may connect directly, also where a NAT lets in only answers. The
// caller opens a stream of type 5 to the relay, with the label of a route that leads to the host. If
// the host may be met, the relay answers with one zero byte and a Meeting, and ends the stream. It
// sends the caller's address to the host, which sends packets of one byte there, so that its NAT lets
// in those of the caller. The caller connects to the address that it was told, as to any other.
//
// For this, a host opens a unidirectional stream on its uplink over QUIC, and sends MayMeet or
// MayNotMeet on it whenever that changes. The relay then opens one too, and sends the byte Meetings
// and a Meeting without a peer, by which the host learns its own address. A Meeting follows for each
// caller.
//
// Codes are also used as application error codes of CONNECTION_CLOSE.
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

// ALPN is the ALPN protocol that both sides must negotiate.
const ALPN = "florete/1"

// ALPNUplink is the same for an uplink.
const ALPNUplink = "florete-uplink/1"

// MaxBody is the maximum length of a preamble's body. It exceeds the length of all our SPIFFE IDs.
const MaxBody = 512

// Connected is the publishing side's answer to a preamble that it accepts.
const Connected byte = 0

// Leave is the content of the publishing side's unidirectional stream in a handover. Callers ignore
// other bytes on it.
const Leave byte = 1

const (
	version   = 1
	headerLen = 4
)

// StreamType is the type of a stream's content. Numbers are never reused.
type StreamType byte

const (
	TCP     StreamType = 1
	UDP     StreamType = 3 // 2 is reserved; readers refuse it
	Relayed StreamType = 4 // see AppendLabel
	Meet    StreamType = 5 // see AppendMeet
)

// Preamble opens a stream.
type Preamble struct {
	Type   StreamType
	Target spiffe.ID
	Port   string // name of the port if the target has several
}

// Append appends the encoded preamble to b. Read is its inverse.
func (p Preamble) Append(b []byte) []byte {
	target := p.Target.String()
	if p.Port != "" {
		target += ":" + p.Port
	}
	return appendBody(b, p.Type, target)
}

// AppendLabel appends the preamble of a stream to a relay, whose body is the label of a route.
// ReadLabel is its inverse.
func AppendLabel(b []byte, label string) []byte { return appendBody(b, Relayed, label) }

func appendBody(b []byte, t StreamType, body string) []byte {
	b = append(b, version, byte(t))
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	return append(b, body...)
}

// AppendMeet appends the preamble of a stream on which a caller learns the address of the host that
// the route with a label leads to.
func AppendMeet(b []byte, label string) []byte { return appendBody(b, Meet, label) }

// ReadLabel reads exactly the preamble of a stream to a relay. It returns Relayed or Meet, and the
// label.
func ReadLabel(r io.Reader) (StreamType, string, error) { return readBody(r, Relayed, Meet) }

// readBody reads exactly the preamble of a stream of one of these types.
func readBody(r io.Reader, types ...StreamType) (StreamType, string, error) {
	var header [headerLen]byte
	if _, err := io.ReadFull(r, header[:]); err != nil {
		return 0, "", fmt.Errorf("preamble: %w", err)
	}
	if header[0] != version {
		return 0, "", fmt.Errorf("preamble: version %d, want %d", header[0], version)
	}
	t := StreamType(header[1])
	if !slices.Contains(types, t) {
		var want []string
		for _, w := range types {
			want = append(want, strconv.Itoa(int(w)))
		}
		return 0, "", fmt.Errorf("preamble: type %d, want %s", t, strings.Join(want, " or "))
	}
	n := binary.BigEndian.Uint16(header[2:])
	if n > MaxBody {
		return 0, "", fmt.Errorf("preamble: %d bytes, at most %d", n, MaxBody)
	}
	body := make([]byte, n)
	if _, err := io.ReadFull(r, body); err != nil {
		return 0, "", fmt.Errorf("preamble: %w", err)
	}
	return t, string(body), nil
}

// Read reads exactly the preamble of a stream of one of these types.
func Read(r io.Reader, types ...StreamType) (Preamble, error) {
	t, body, err := readBody(r, types...)
	if err != nil {
		return Preamble{}, err
	}
	id, port := body, ""
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
