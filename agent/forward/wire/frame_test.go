package wire_test

import (
	"encoding/hex"
	"testing"

	"github.com/florete/florete/agent/forward/wire"
)

var types = map[string]wire.FrameType{"data": wire.Data, "end": wire.End, "abort": wire.Abort, "stop": wire.Stop, "close": wire.Close}

func TestFramesOverTCP(t *testing.T) {
	v := load(t)
	if v.TCP.ALPN != wire.ALPNOverTCP {
		t.Errorf("ALPN %q, want %q", wire.ALPNOverTCP, v.TCP.ALPN)
	}
	for _, f := range v.TCP.Frames {
		b, kind, code := unhex(t, f.Hex), types[f.Type], v.Codes[f.Code]
		got, length, err := wire.ParseFrame(b)
		if err != nil || got != kind || length != f.Length {
			t.Errorf("%s is read as type %d of %d bytes, %v", f.Hex, got, length, err)
		}
		body := b[wire.FrameHeader:]
		written := append(wire.AppendFrame(nil, kind, f.Length), body...)
		switch {
		case f.Stream != nil:
			written = wire.AppendAbort(nil, kind, *f.Stream, code)
			if stream, c, err := wire.ParseAbort(body); err != nil || stream != *f.Stream || c != code {
				t.Errorf("%s is read as stream %d, %s, %v", f.Hex, stream, c, err)
			}
		case kind == wire.Close:
			written = wire.AppendClose(nil, code, f.Reason)
			if c, reason, err := wire.ParseClose(body); err != nil || c != code || reason != f.Reason {
				t.Errorf("%s is read as %s, %q, %v", f.Hex, c, reason, err)
			}
		}
		if hex.EncodeToString(written) != f.Hex {
			t.Errorf("%s is written as %x", f.Hex, written)
		}
	}
	for _, x := range v.TCP.BadFrames {
		x.check(t, parse(unhex(t, x.Hex)))
	}
}

// parse reads a whole frame.
func parse(b []byte) error {
	kind, length, err := wire.ParseFrame(b)
	if err != nil || kind == wire.Data {
		return err
	}
	body := b[wire.FrameHeader:]
	switch {
	case length > len(body):
		return nil
	case kind == wire.Close:
		_, _, err = wire.ParseClose(body[:length])
	case kind != wire.End:
		_, _, err = wire.ParseAbort(body[:length])
	}
	return err
}

// TestLongReason checks that a reason that is too long for a frame is truncated.
func TestLongReason(t *testing.T) {
	b := wire.AppendClose(nil, 1<<62-1, string(make([]byte, 1000)))
	if _, length, err := wire.ParseFrame(b); err != nil || length != len(b)-wire.FrameHeader {
		t.Errorf("%d of %d bytes, %v", length, len(b), err)
	}
}

func FuzzFrame(f *testing.F) {
	v := load(f)
	for _, x := range v.TCP.Frames {
		f.Add(unhex(f, x.Hex))
	}
	for _, x := range v.TCP.BadFrames {
		f.Add(unhex(f, x.Hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) >= wire.FrameHeader {
			_ = parse(b)
		}
	})
}
