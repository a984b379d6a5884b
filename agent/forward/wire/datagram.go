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

// AppendStreamID appends the header of a DATAGRAM frame to b. The header contains the ID of the
// stream that belongs to the UDP session. The caller appends the payload afterwards. CutStreamID
// parses such a frame.
func AppendStreamID(b []byte, stream quic.StreamID) []byte {
	return quicvarint.Append(b, uint64(stream)/4)
}

// CutStreamID parses a DATAGRAM frame, and returns the ID of the UDP session's stream and the
// payload. The payload is a part of b.
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

// AppendLength appends to b the two-byte header of a datagram that is sent on the stream of its
// session instead of in a frame. The caller appends the payload, of the given length in bytes,
// afterwards.
func AppendLength(b []byte, length int) []byte {
	return binary.BigEndian.AppendUint16(b, uint16(length))
}

// ReadLength reads the header of the next datagram on a stream, and returns the length of the
// payload, which follows. At the end of the session, it returns io.EOF. If the length exceeds
// MaxPayload, it returns an error.
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
