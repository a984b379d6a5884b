package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/quic-go/quic-go/quicvarint"
)

// ALPNOverTCP is the ALPN protocol of connections between forwarders over TLS 1.3 on TCP. They are
// used where QUIC does not work. Such a connection carries one stream at a time, in frames:
//
//	offset 0  type
//	offset 1  length of the rest, three bytes, big endian
//	offset 4  of Data: bytes of the stream
//	          of Abort and Stop: the stream ID, then a Code, both varints
//	          of Close: a Code, a varint, then the reason text
//	          of End: nothing
//
// Streams have the same IDs as over QUIC: 0, 4, 8. A stream begins with the caller's first Data
// frame. A stream is over when each side has sent End or Abort and has received End or Abort from
// the other side. The next stream may then begin.
//
// Abort corresponds to RESET_STREAM of QUIC, and Stop to STOP_SENDING. A side that receives Stop
// for the current stream answers with Abort and the same code, unless it has already ended the
// stream. Datagrams are sent on the stream.
const ALPNOverTCP = "florete-tcp/1"

// ALPNUplinkOverTCP is the ALPN protocol of uplinks over TLS 1.3 on TCP. It is like ALPNOverTCP,
// but the relay opens the streams.
const ALPNUplinkOverTCP = "florete-uplink-tcp/1"

// FrameType is the type of a frame on a connection over TCP. Its numbers are part of the protocol
// and never reused.
type FrameType byte

const (
	Data  FrameType = 0
	End   FrameType = 1 // the sender sends nothing more
	Abort FrameType = 2 // the sender sends nothing more, and the data it sent is incomplete
	Stop  FrameType = 3 // asks the other side to send nothing more
	Close FrameType = 4 // the connection ends
)

const (
	// FrameHeader is the length of a frame header in bytes.
	FrameHeader = 4
	// MaxData is the maximum length of a Data frame's content, in bytes.
	MaxData = 1<<24 - 1
	// MaxControl is the maximum length of any other frame's content, in bytes.
	MaxControl = 256
)

// AppendFrame appends the header of a frame to b. The caller appends the content, of the given
// length in bytes, afterwards.
func AppendFrame(b []byte, t FrameType, length int) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(t)<<24|uint32(length))
}

// AppendAbort appends a complete Abort or Stop frame to the slice b.
func AppendAbort(b []byte, t FrameType, stream int64, code Code) []byte {
	n := quicvarint.Len(uint64(stream)) + quicvarint.Len(uint64(code))
	b = quicvarint.Append(AppendFrame(b, t, n), uint64(stream))
	return quicvarint.Append(b, uint64(code))
}

// AppendClose appends a complete Close frame to b. A reason that is too long for a frame is
// truncated.
func AppendClose(b []byte, code Code, reason string) []byte {
	reason = reason[:min(len(reason), MaxControl-8)]
	b = quicvarint.Append(AppendFrame(b, Close, quicvarint.Len(uint64(code))+len(reason)), uint64(code))
	return append(b, reason...)
}

// ParseFrame parses a frame header of FrameHeader bytes, and returns the type of the frame and the
// length of its content in bytes. It returns an error if the type is unknown or the length is too
// large for the type.
func ParseFrame(b []byte) (t FrameType, length int, err error) {
	head := binary.BigEndian.Uint32(b)
	t, length = FrameType(head>>24), int(head&MaxData)
	switch {
	case t > Close:
		return t, 0, fmt.Errorf("frame: type %d, at most %d", t, Close)
	case t == End && length > 0:
		return t, 0, fmt.Errorf("frame: an end of %d bytes, want none", length)
	case t != Data && length > MaxControl:
		return t, 0, fmt.Errorf("frame: %d bytes of type %d, at most %d", length, t, MaxControl)
	}
	return t, length, nil
}

// ParseAbort parses the content of an Abort or Stop frame, and returns the ID of the stream and the
// code.
func ParseAbort(b []byte) (stream int64, code Code, err error) {
	id, n, err := quicvarint.Parse(b)
	if err != nil {
		return 0, 0, fmt.Errorf("frame: stream: %w", err)
	}
	c, m, err := quicvarint.Parse(b[n:])
	if err != nil {
		return 0, 0, fmt.Errorf("frame: code: %w", err)
	}
	if n+m != len(b) {
		return 0, 0, fmt.Errorf("frame: %d bytes behind the code, want none", len(b)-n-m)
	}
	return int64(id), Code(c), nil
}

// ParseClose parses the content of a Close frame.
func ParseClose(b []byte) (code Code, reason string, err error) {
	c, n, err := quicvarint.Parse(b)
	if err != nil {
		return 0, "", fmt.Errorf("frame: code: %w", err)
	}
	return Code(c), string(b[n:]), nil
}
