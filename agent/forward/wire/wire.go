// Package wire defines the protocol between the forwarders of two hosts. Inside QUIC (RFC 9000),
// its ALPN protocol is "florete/1".
//
// # Streams
//
// A connection is between one caller and one target, both proven by their X.509-SVIDs. Each TCP
// connection and each UDP session is one bidirectional stream. The caller's side opens the stream
// with a preamble:
//
//	offset 0  version, 1
//	offset 1  type, 1 = a TCP connection, 3 = a UDP session
//	offset 2  length of the rest, big endian, at most MaxBody
//	offset 4  SPIFFE ID of the target; for a named port followed by ":" and the port's name
//
// For example, a stream to spiffe://demo.flor/service/outline begins with 01 01 00 22 and the 34
// bytes of that ID. The caller's bytes may follow at once. When the upstream is connected, the
// publishing side answers with one zero byte, followed by the upstream's bytes. To refuse the
// stream, it resets both directions with a Code.
//
// A FIN of TCP becomes the FIN of the stream, separately in each direction. An RST of TCP becomes
// RESET_STREAM and STOP_SENDING with code Reset. Codes are also used as application error codes of
// CONNECTION_CLOSE.
//
// # UDP sessions
//
// A UDP session consists of the datagrams that one local address sends to the target, and those
// that the target sends back. A datagram is sent in a DATAGRAM frame (RFC 9221). Its prefix is the
// ID of the stream divided by four, as a varint (RFC 9000, section 16; compare RFC 9297, section
// 2.1). Two kinds of datagrams are sent on the stream instead, prefixed by their length in two
// bytes, big endian: datagrams that are too large for a frame, and datagrams that the caller sends
// before the answer. The latter directly follow the preamble. The end of either direction of the
// stream ends the session.
//
// # Checks and migration
//
// Over QUIC, a caller may open one unidirectional stream to check that packets of full size pass.
// The caller sends zero bytes on it. The publishing side returns each byte on a unidirectional
// stream of its own. A byte that does not come back was lost.
//
// A caller sends an empty DATAGRAM frame to show its new address after a migration. The frame has
// no other meaning.
//
// # Handover
//
// During a handover to another process, the publishing side opens a further unidirectional stream
// and sends Leave on it. Older callers do not allow this stream. The caller then opens new streams
// on a new connection, and closes the old connection after its last stream. Over TCP, the
// publishing side closes the connection with Stopping after the current stream has ended.
//
// # Relays
//
// A relay is called like a service: the target of the connection is the relay's vertex, and the
// caller is a node or the vertex of another relay. On this connection, the body of a preamble of
// type 4 is the label of a route, which the relay looks up. The relay opens a stream to the
// target's host or to the next relay, joins the two streams, and answers with one zero byte. The
// streams then carry a connection between the caller's and the target's forwarder, as over TCP
// (ALPNOverTCP). The relay cannot read it.
//
// An uplink is a connection by which a host makes itself reachable at a relay. The host connects as
// its node to the relay's vertex, with ALPNUplink. The relay opens the streams of an uplink, which
// have no preamble and no answer.
//
// # Meetings
//
// Two hosts that a relay knows may connect directly, even through a NAT that lets in only answers.
// The caller opens a stream of type 5 to the relay, with the label of a route that leads to the
// host. If the host allows it, the relay answers with one zero byte and a Meeting, and ends the
// stream. The relay also sends the caller's address to the host. The host sends packets of one byte
// to this address, so that the host's NAT lets in packets from the caller. The caller then connects
// to the address in the Meeting, as to any other.
//
// To take part, a host opens a unidirectional stream on its uplink over QUIC. On it, the host sends
// MayMeet or MayNotMeet, and again whenever this changes. The relay then opens a unidirectional
// stream too. On it, the relay sends the byte Meetings and a Meeting without a peer, from which the
// host learns its own address. A Meeting follows for each caller.
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

// ALPN is the ALPN protocol that both sides of a connection over QUIC must negotiate.
const ALPN = "florete/1"

// ALPNUplink is the ALPN protocol of uplinks over QUIC.
const ALPNUplink = "florete-uplink/1"

// MaxBody is the maximum length in bytes of a preamble's body. It exceeds the length of all our
// SPIFFE IDs.
const MaxBody = 512

// Connected is the answer of the publishing side when it has accepted a stream.
const Connected byte = 0

// Leave tells a caller to open new streams on another connection. The publishing side sends it on a
// unidirectional stream during a handover. Callers ignore other bytes on that stream.
const Leave byte = 1

const (
	version   = 1
	headerLen = 4
)

// StreamType tells what a stream carries. Numbers are never reused.
type StreamType byte

const (
	TCP     StreamType = 1
	UDP     StreamType = 3 // 2 is reserved; readers refuse it
	Relayed StreamType = 4 // see AppendLabel
	Meet    StreamType = 5 // see AppendMeet
)

// Preamble is the beginning of a stream. It tells the publishing side what the stream carries and
// for which target.
type Preamble struct {
	Type   StreamType
	Target spiffe.ID
	Port   string // name of the port if the target has several
}

// Append appends the encoded preamble to b. The function Read is its inverse.
func (p Preamble) Append(b []byte) []byte {
	target := p.Target.String()
	if p.Port != "" {
		target += ":" + p.Port
	}
	return appendBody(b, p.Type, target)
}

// AppendLabel appends the preamble of a stream to a relay. The body of the preamble is the label of
// a route. ReadLabel is the inverse of AppendLabel.
func AppendLabel(b []byte, label string) []byte { return appendBody(b, Relayed, label) }

func appendBody(b []byte, t StreamType, body string) []byte {
	b = append(b, version, byte(t))
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	return append(b, body...)
}

// AppendMeet appends the preamble of a stream on which a caller asks a relay for a host's address.
// The label is that of a route which leads to the host.
func AppendMeet(b []byte, label string) []byte { return appendBody(b, Meet, label) }

// ReadLabel reads the preamble of a stream to a relay, and no further bytes. It returns the type of
// the stream, Relayed or Meet, and the label of the route.
func ReadLabel(r io.Reader) (StreamType, string, error) { return readBody(r, Relayed, Meet) }

// readBody reads a preamble, and no further bytes. It returns an error if the type of the stream is
// none of the given types.
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

// Read reads the preamble of a stream, and no further bytes. It returns an error if the preamble is
// malformed or the type of the stream is none of the given types.
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
