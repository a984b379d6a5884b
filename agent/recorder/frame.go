package recorder

import (
	"encoding/binary"
	"fmt"
	"io"
	"time"

	"github.com/florete/florete/internal/recording"
)

// frame is a message of a client about its session.
type frame struct {
	kind    byte
	content []byte
}

func readFrame(r io.Reader) (f frame, err error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return f, err
	}
	n := binary.BigEndian.Uint32(head[1:])
	if n > maxFrame {
		return f, fmt.Errorf("frame of %d bytes, want at most %d", n, maxFrame)
	}
	f = frame{head[0], make([]byte, n)}
	_, err = io.ReadFull(r, f.content)
	return f, err
}

// numbers returns the content of a frame that consists of numbers.
func numbers(all ...int) []byte {
	var b []byte
	for _, n := range all {
		b = binary.BigEndian.AppendUint32(b, uint32(n))
	}
	return b
}

func (f frame) number(i int) int { return int(int32(binary.BigEndian.Uint32(f.content[4*i:]))) }

func (f frame) bytes() []byte {
	b := append(make([]byte, 0, 5+len(f.content)), f.kind)
	b = binary.BigEndian.AppendUint32(b, uint32(len(f.content)))
	return append(b, f.content...)
}

// add adds the event in a frame to a recording.
func (f frame) add(w *recording.Writer, now time.Time) error {
	switch {
	case f.kind == frameOutput:
		w.Output(now, f.content)
	case f.kind == frameResize && len(f.content) == 8:
		w.Resize(now, f.number(0), f.number(1))
	case f.kind == frameExit && len(f.content) == 4:
		w.Exit(now, f.number(0))
	default:
		return fmt.Errorf("frame %q of %d bytes: not a client of this recorder", f.kind, len(f.content))
	}
	return nil
}
