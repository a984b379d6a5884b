package wire

import (
	"encoding/binary"
	"fmt"

	"github.com/quic-go/quic-go/quicvarint"
)

// ALPNOverTCP is the protocol of connections over TLS 1.3 on TCP, which carry one stream at
// a time, each as QUIC does, in frames:
//
//	offset 0  type
//	offset 1  length of the rest, three bytes, big endian
//	offset 4  of Data: bytes of the stream
//	          of Abort and Stop: the stream, then a Code, both varints
//	          of Close: a Code, a varint, then the reason, text
//	          of End: nothing
//
// Streams have the numbers that QUIC gives them: 0, 4, 8. The caller's first Data begins a
// stream; the next begins once each side has sent End or Abort, and has received the
// other's. Abort and Stop are RESET_STREAM and STOP_SENDING: whoever receives a Stop of the
// stream under way, and has not ended it, sends Abort with the code of it. Datagrams go over
// the stream.
const ALPNOverTCP = "florete-tcp/1"

// FrameType is what a frame is. Numbers are never reused.
type FrameType byte

const (
	Data  FrameType = 0
	End   FrameType = 1 // this side sends no more
	Abort FrameType = 2 // the same, and what it sent is not whole
	Stop  FrameType = 3 // the other side is to send no more
	Close FrameType = 4 // the connection ends
)

const (
	// FrameHeader is the length of a frame's first part.
	FrameHeader = 4
	// MaxData bounds what a Data frame has.
	MaxData = 1<<24 - 1
	// MaxControl bounds what any other frame has.
	MaxControl = 256
)

// AppendFrame adds the header of a frame to b; length bytes follow.
func AppendFrame(b []byte, t FrameType, length int) []byte {
	return binary.BigEndian.AppendUint32(b, uint32(t)<<24|uint32(length))
}

// AppendAbort adds a whole Abort or Stop to b.
func AppendAbort(b []byte, t FrameType, stream int64, code Code) []byte {
	n := quicvarint.Len(uint64(stream)) + quicvarint.Len(uint64(code))
	b = quicvarint.Append(AppendFrame(b, t, n), uint64(stream))
	return quicvarint.Append(b, uint64(code))
}

// AppendClose adds a whole Close to b.
func AppendClose(b []byte, code Code, reason string) []byte {
	reason = reason[:min(len(reason), MaxControl-8)]
	b = quicvarint.Append(AppendFrame(b, Close, quicvarint.Len(uint64(code))+len(reason)), uint64(code))
	return append(b, reason...)
}

// ParseFrame reads the header of a frame, FrameHeader bytes.
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

// ParseAbort reads what a Abort or Stop has behind its header.
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

// ParseClose reads what a Close has behind its header.
func ParseClose(b []byte) (code Code, reason string, err error) {
	c, n, err := quicvarint.Parse(b)
	if err != nil {
		return 0, "", fmt.Errorf("frame: code: %w", err)
	}
	return Code(c), string(b[n:]), nil
}
