// Package wire defines the protocol that two forwarders speak with each other. It runs inside QUIC
// (RFC 9000) with the ALPN protocol "florete/1".
//
// A connection has one caller and one target. Each proves its identity with its X.509-SVID. Each
// TCP connection and each UDP session is carried by one bidirectional stream of the connection. The
// caller's side opens the stream with a preamble:
//
//	offset 0  version, 1
//	offset 1  type, 1 = a TCP connection, 3 = a UDP session, 6 = a TCP connection of a stranger
//	offset 2  length of the rest, big endian, at most MaxBody
//	offset 4  SPIFFE ID of the target; for a named port followed by ":" and the port's name
//	          of type 6: then the stranger's address and the address that it called, each as
//	          " host:port"
//
// For example, a stream to spiffe://demo.flor/service/outline begins with the bytes 01 01 00 22 and
// the 34 bytes of that ID. The caller's bytes may follow at once. The publishing side connects to
// the service's upstream, answers with one zero byte, and then sends the upstream's bytes. To
// refuse the stream, it resets both directions with a Code.
//
// A FIN of TCP becomes the FIN of the stream, separately in each direction. An RST of TCP becomes
// RESET_STREAM and STOP_SENDING with the code Reset.
//
// # UDP sessions
//
// A UDP session consists of the datagrams that one local address sends to the target, and those
// that the target sends back. Each datagram is sent in a DATAGRAM frame (RFC 9221). The frame
// begins with the stream ID divided by four, as a varint (RFC 9000, section 16; compare RFC 9297,
// section 2.1).
//
// Two kinds of datagrams are sent on the stream instead, after their length in two bytes, big
// endian: datagrams that are too large for a frame, and datagrams that the caller sends before the
// answer. Datagrams before the answer follow the preamble directly. The session ends when either
// direction of the stream ends.
//
// # Checks
//
// Over QUIC, a caller may open one unidirectional stream to check the path. The publishing side
// then opens such a stream too and returns on it every byte that it receives. All bytes are zero. A
// byte that does not come back was lost. An empty DATAGRAM frame has no meaning; a caller sends one
// after a migration, to show its new address.
//
// # Handover
//
// During a handover, the publishing side opens another unidirectional stream and sends Leave on it.
// The caller then opens new streams on a new connection. It closes the old connection after the
// last stream. Older callers do not allow this stream. Over TCP, the publishing side closes the
// connection with the code Stopping after the current stream.
//
// # Relays
//
// A caller connects to a relay as to a service. The target of the connection is the relay's vertex.
// The caller is a node, or the vertex of another relay. On this connection, the preamble of a
// stream of type 4 contains the label of a route. The relay looks up the label and opens a stream
// to the target's host or to the next relay. It joins the two streams and answers with one zero
// byte. The streams then carry a connection as over TCP (ALPNOverTCP) between the caller's and the
// target's forwarder. The relay cannot read it.
//
// An uplink is a connection by which a host makes itself reachable through a relay. The host
// connects as its node to the relay's vertex, with ALPNUplink. The relay opens the streams of an
// uplink. They have no preamble and no answer.
//
// # Direct connections
//
// Two hosts that a relay knows may connect directly, even if a NAT in front of the target's host
// lets in only answers. The steps are:
//
//  1. The caller opens a stream of type 5 to the relay, with the label of a route to the host.
//  2. If the host allows it, the relay answers with one zero byte and a Meeting, and ends the
//     stream.
//  3. The relay sends the caller's address to the host.
//  4. The host sends packets of one byte to that address, so that its NAT lets in the caller's
//     packets.
//  5. The caller connects to the host's address in the Meeting as to any other address.
//
// For this purpose, a host opens a unidirectional stream on its uplink over QUIC. It sends MayMeet
// or MayNotMeet on the stream whenever its answer changes. The relay then opens a unidirectional
// stream too. It sends the byte Meetings, and then a Meeting without a peer, from which the host
// learns its own address. One Meeting for each caller follows.
//
// When a forwarder closes a connection, it also uses a Code as the application error code of
// CONNECTION_CLOSE.
package wire

import (
	"encoding/binary"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/spiffe"
)

// ALPN is the ALPN protocol of connections between forwarders over QUIC. Both sides must negotiate
// it.
const ALPN = "florete/1"

// ALPNUplink is the ALPN protocol of an uplink over QUIC. See the package documentation for
// uplinks.
const ALPNUplink = "florete-uplink/1"

// MaxBody is the maximum length of a preamble's body in bytes. Every SPIFFE ID of a cluster fits in
// it.
const MaxBody = 512

// Connected is the byte with which the publishing side answers after it has connected to the
// service.
const Connected byte = 0

// Leave is the byte by which the publishing side asks a caller to use a new connection, during a
// handover. It is sent on a unidirectional stream. Callers ignore other bytes on that stream.
const Leave byte = 1

const (
	version   = 1
	headerLen = 4
)

// StreamType is the type of a stream, which its preamble contains. Numbers are part of the protocol
// and never reused.
type StreamType byte

const (
	TCP     StreamType = 1
	UDP     StreamType = 3 // the number 2 is reserved; readers refuse it
	Relayed StreamType = 4 // a relayed connection; see AppendLabel
	Meet    StreamType = 5 // a request to meet a host; see AppendMeet
	Entered StreamType = 6 // a TCP connection of a stranger, with its addresses
)

// Preamble is the message at the beginning of a stream to a service. It says which service the
// caller wants to reach.
type Preamble struct {
	Type   StreamType
	Target spiffe.ID
	Port   string // name of the port, if the target has several
	Origin Origin // of Entered
}

// Origin contains the two addresses of a TCP connection from a client without an identity, which
// has connected to a listener for such clients on the caller's host (document.Entry).
type Origin struct {
	From netip.AddrPort // the stranger
	To   netip.AddrPort // the address that the stranger called
}

// Append appends the encoded preamble to b. Read is the inverse.
func (p Preamble) Append(b []byte) []byte {
	target := p.Target.String()
	if p.Port != "" {
		target += ":" + p.Port
	}
	if p.Type == Entered {
		target += " " + p.Origin.From.String() + " " + p.Origin.To.String()
	}
	return appendBody(b, p.Type, target)
}

// AppendLabel appends to b the preamble of a stream through a relay. The label names the route that
// the relay follows. ReadLabel is the inverse.
func AppendLabel(b []byte, label string) []byte { return appendBody(b, Relayed, label) }

func appendBody(b []byte, t StreamType, body string) []byte {
	b = append(b, version, byte(t))
	b = binary.BigEndian.AppendUint16(b, uint16(len(body)))
	return append(b, body...)
}

// AppendMeet appends to b the preamble of a stream on which a caller asks a relay to introduce it
// to a host. The label names a route that leads to the host. ReadLabel is the inverse.
func AppendMeet(b []byte, label string) []byte { return appendBody(b, Meet, label) }

// ReadLabel reads the preamble of a stream to a relay, and no byte after it. It returns the type of
// the stream, which is Relayed or Meet, and the label of the route.
func ReadLabel(r io.Reader) (StreamType, string, error) { return readBody(r, Relayed, Meet) }

// readBody reads a preamble, and no byte after it. It returns an error if the type of the stream is
// not in the list types.
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

// Read reads the preamble of a stream to a service, and no byte after it. It returns an error if
// the preamble is malformed, or if its type is not one of types.
func Read(r io.Reader, types ...StreamType) (Preamble, error) {
	t, body, err := readBody(r, types...)
	if err != nil {
		return Preamble{}, err
	}
	var origin Origin
	if t == Entered {
		if body, origin, err = cutOrigin(body); err != nil {
			return Preamble{}, err
		}
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
	return Preamble{t, target, port, origin}, nil
}

// cutOrigin splits the body of a preamble of type Entered into the target and the origin. Both
// addresses must be of one family, as in the PROXY protocol.
func cutOrigin(body string) (target string, o Origin, err error) {
	parts := strings.Split(body, " ")
	if len(parts) != 3 {
		return "", o, fmt.Errorf("preamble: %q, want a target and two addresses", body)
	}
	if o.From, err = netip.ParseAddrPort(parts[1]); err == nil {
		o.To, err = netip.ParseAddrPort(parts[2])
	}
	switch {
	case err != nil:
		return "", o, fmt.Errorf("preamble: %w", err)
	case o != o.Canonical(), o.From.Addr().Is4() != o.To.Addr().Is4():
		return "", o, fmt.Errorf("preamble: addresses %s and %s, want both of one family, without a zone", o.From, o.To)
	}
	return parts[0], o, nil
}

// Canonical returns the origin in a form in which addresses can be compared. IPv4 addresses that
// are mapped into IPv6 become IPv4 addresses, and zones are removed.
func (o Origin) Canonical() Origin {
	plain := func(a netip.AddrPort) netip.AddrPort {
		return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
	}
	return Origin{plain(o.From), plain(o.To)}
}
