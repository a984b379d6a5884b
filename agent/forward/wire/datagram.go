package wire

import (
	"encoding/binary"
	"fmt"
	"io"

	"github.com/quic-go/quic-go"
	"github.com/quic-go/quic-go/quicvarint"
)

// MaxPayload is the maximum payload of a UDP datagram over IPv4, in bytes.
const MaxPayload = 65507

// AppendStreamID appends the prefix of a DATAGRAM frame to the slice b. The prefix identifies the
// stream of the UDP session. The caller appends the payload afterwards.
func AppendStreamID(b []byte, stream quic.StreamID) []byte {
	return quicvarint.Append(b, uint64(stream)/4)
}

// CutStreamID parses a DATAGRAM frame. It returns the ID of the UDP session's stream and the
// payload.
func CutStreamID(b []byte) (stream quic.StreamID, payload []byte, err error) {
	quarter, n, err := quicvarint.Parse(b)
	if err != nil {
		return 0, nil, fmt.Errorf("datagram: stream: %w", err)
	}
	if quarter > quicvarint.Max/4 {
		return 0, nil, fmt.Errorf("datagram: stream %d, at most %d", quarter, uint64(quicvarint.Max/4))
	}
	return quic.StreamID(quarter * 4), b[n:], nil
}

// AppendLength appends the length of a datagram to the slice b. It is used for a datagram that is
// sent on the stream instead of in a frame. The caller appends the payload afterwards.
func AppendLength(b []byte, length int) []byte {
	return binary.BigEndian.AppendUint16(b, uint16(length))
}

// ReadLength reads the length of the next datagram that was sent on a stream. The payload follows.
// ReadLength returns io.EOF at the end of the session.
func ReadLength(r io.Reader) (int, error) {
	var b [2]byte
	if _, err := io.ReadFull(r, b[:]); err != nil {
		return 0, err
	}
	n := int(binary.BigEndian.Uint16(b[:]))
	if n > MaxPayload {
		return 0, fmt.Errorf("datagram: %d bytes, at most %d", n, MaxPayload)
	}
	return n, nil
}
