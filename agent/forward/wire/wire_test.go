package wire_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"net/netip"
	"os"
	"testing"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/spiffe"
)

type (
	preamble struct {
		Target spiffe.ID
		Port   string
		Hex    string
	}
	bad struct{ Why, Hex, Error string }

	frame struct {
		Type         string
		Length       int
		Hex          string
		Stream       *int64
		Code, Reason string
	}

	vectors struct {
		ALPN     string
		Unserved []struct {
			Reason string
			First  *int64
		}
		Preambles []preamble
		Refused   []bad
		Entered   struct {
			Preambles []struct {
				Target   spiffe.ID
				Port     string
				From, To netip.AddrPort
				Hex      string
			}
			Refused []bad
		}
		Answers map[string]byte
		Codes   map[string]wire.Code
		Relay   struct {
			UplinkALPN, UplinkALPNOverTCP string
			Labels                        []struct{ Label, Hex string }
			Refused                       []bad
			Meet                          []struct{ Label, Hex string }
			MayMeet, MayNotMeet, Meetings byte
			Addresses                     []struct{ Peer, Own, Hex string }
		}
		TCP struct {
			ALPN      string
			Frames    []frame
			BadFrames []bad
		}
		UDP struct {
			Preambles []preamble
			Refused   []bad
			Frames    []struct {
				Stream       quic.StreamID
				Payload, Hex string
			}
			BadFrames []bad
			Lengths   []struct {
				Length int
				Hex    string
			}
			BadLengths []bad
		}
	}
)

func load(t testing.TB) (v vectors) {
	t.Helper()
	b, err := os.ReadFile("../../../tests/golden/wire/forwarder/vectors.json")
	if err != nil {
		t.Fatal(err)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return v
}

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	b, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestPreambleVectors(t *testing.T) {
	v := load(t)
	for kind, preambles := range map[wire.StreamType][]preamble{wire.TCP: v.Preambles, wire.UDP: v.UDP.Preambles} {
		for _, p := range preambles {
			want := wire.Preamble{Type: kind, Target: p.Target, Port: p.Port}
			if got := hex.EncodeToString(want.Append(nil)); got != p.Hex {
				t.Errorf("%s is written as %s, want %s", p.Target, got, p.Hex)
			}
			r := bytes.NewReader(append(unhex(t, p.Hex), "payload"...))
			if got, err := wire.Read(r, kind); err != nil || got != want {
				t.Errorf("%s is read as %v, %v", p.Hex, got, err)
			}
			if r.Len() != len("payload") {
				t.Errorf("%d bytes left behind the preamble, want %d", r.Len(), len("payload"))
			}
		}
	}
}

func TestRefusedVectors(t *testing.T) {
	v := load(t)
	for kind, refused := range map[wire.StreamType][]bad{wire.TCP: v.Refused, wire.UDP: v.UDP.Refused} {
		for _, x := range refused {
			_, err := wire.Read(bytes.NewReader(unhex(t, x.Hex)), kind)
			x.check(t, err)
		}
	}
	// Input that one reader refuses is refused by the other, too.
	for _, x := range v.Refused {
		if p, err := wire.Read(bytes.NewReader(unhex(t, x.Hex)), wire.UDP); err == nil {
			t.Errorf("%s: read as %v", x.Why, p)
		}
	}
}

// TestEnteredVectors checks the preambles that state the addresses of a stranger's connection.
func TestEnteredVectors(t *testing.T) {
	v := load(t).Entered
	for _, p := range v.Preambles {
		want := wire.Preamble{Type: wire.Entered, Target: p.Target, Port: p.Port, Origin: wire.Origin{From: p.From, To: p.To}}
		if got := hex.EncodeToString(want.Append(nil)); got != p.Hex {
			t.Errorf("%s is written as %s, want %s", p.Target, got, p.Hex)
		}
		if got, err := wire.Read(bytes.NewReader(unhex(t, p.Hex)), wire.TCP, wire.Entered); err != nil || got != want {
			t.Errorf("%s is read as %v, %v", p.Hex, got, err)
		}
		if _, err := wire.Read(bytes.NewReader(unhex(t, p.Hex)), wire.TCP); err == nil {
			t.Errorf("%s is read where no stranger may come in", p.Hex)
		}
	}
	for _, x := range v.Refused {
		_, err := wire.Read(bytes.NewReader(unhex(t, x.Hex)), wire.Entered)
		x.check(t, err)
	}
}

func (x bad) check(t *testing.T, err error) {
	t.Helper()
	if err == nil || err.Error() != x.Error {
		t.Errorf("%s: error %v, want %q", x.Why, err, x.Error)
	}
}

func TestFrameVectors(t *testing.T) {
	v := load(t).UDP
	for _, f := range v.Frames {
		b := append(wire.AppendStreamID(nil, f.Stream), unhex(t, f.Payload)...)
		if got := hex.EncodeToString(b); got != f.Hex {
			t.Errorf("stream %d is written as %s, want %s", f.Stream, got, f.Hex)
		}
		stream, payload, err := wire.CutStreamID(unhex(t, f.Hex))
		if err != nil || stream != f.Stream || hex.EncodeToString(payload) != f.Payload {
			t.Errorf("%s is read as %d, %x, %v", f.Hex, stream, payload, err)
		}
	}
	for _, x := range v.BadFrames {
		_, _, err := wire.CutStreamID(unhex(t, x.Hex))
		x.check(t, err)
	}
}

func TestLengthVectors(t *testing.T) {
	v := load(t).UDP
	for _, l := range v.Lengths {
		if got := hex.EncodeToString(wire.AppendLength(nil, l.Length)); got != l.Hex {
			t.Errorf("%d is written as %s, want %s", l.Length, got, l.Hex)
		}
		if got, err := wire.ReadLength(bytes.NewReader(unhex(t, l.Hex))); err != nil || got != l.Length {
			t.Errorf("%s is read as %d, %v", l.Hex, got, err)
		}
	}
	for _, x := range v.BadLengths {
		_, err := wire.ReadLength(bytes.NewReader(unhex(t, x.Hex)))
		x.check(t, err)
	}
}

func TestNumbers(t *testing.T) {
	v := load(t)
	if v.ALPN != wire.ALPN {
		t.Errorf("ALPN is %q, want %q", wire.ALPN, v.ALPN)
	}
	if v.Answers["connected"] != wire.Connected {
		t.Errorf("connected is %d, want %d", wire.Connected, v.Answers["connected"])
	}
	for name, code := range v.Codes {
		if code.String() != name {
			t.Errorf("code %d is %q, want %q", code, code, name)
		}
	}
	if next := wire.Code(len(v.Codes)); next.String() != "code-14" {
		t.Errorf("code %d is %q: the vectors do not have it", next, next)
	}
}

func TestRelayVectors(t *testing.T) {
	v := load(t).Relay
	if v.UplinkALPN != wire.ALPNUplink || v.UplinkALPNOverTCP != wire.ALPNUplinkOverTCP {
		t.Errorf("ALPN of uplinks is %q and %q, want %q and %q", wire.ALPNUplink, wire.ALPNUplinkOverTCP, v.UplinkALPN, v.UplinkALPNOverTCP)
	}
	labels := func(is wire.StreamType, write func([]byte, string) []byte, all []struct{ Label, Hex string }) {
		for _, l := range all {
			if got := hex.EncodeToString(write(nil, l.Label)); got != l.Hex {
				t.Errorf("%s is written as %s, want %s", l.Label, got, l.Hex)
			}
			r := bytes.NewReader(append(unhex(t, l.Hex), "payload"...))
			if asks, got, err := wire.ReadLabel(r); err != nil || asks != is || got != l.Label || r.Len() != len("payload") {
				t.Errorf("%s is read as type %d, %q, %v, and leaves %d bytes", l.Hex, asks, got, err, r.Len())
			}
		}
	}
	labels(wire.Relayed, wire.AppendLabel, v.Labels)
	labels(wire.Meet, wire.AppendMeet, v.Meet)
	for _, x := range v.Refused {
		_, _, err := wire.ReadLabel(bytes.NewReader(unhex(t, x.Hex)))
		x.check(t, err)
	}
	if v.MayMeet != wire.MayMeet || v.MayNotMeet != wire.MayNotMeet || v.Meetings != wire.Meetings {
		t.Errorf("bytes of unidirectional streams are %d, %d and %d", wire.MayMeet, wire.MayNotMeet, wire.Meetings)
	}
	for _, x := range v.Addresses {
		var m wire.Meeting
		if x.Peer != "" {
			m.Peer = netip.MustParseAddrPort(x.Peer)
		}
		m.Own = netip.MustParseAddrPort(x.Own)
		if got := hex.EncodeToString(m.Append(nil)); got != x.Hex {
			t.Errorf("%v is written as %s, want %s", m, got, x.Hex)
		}
		if got, err := wire.ReadMeeting(bytes.NewReader(unhex(t, x.Hex))); err != nil || got != m {
			t.Errorf("%s is read as %v, %v, want %v", x.Hex, got, err, m)
		}
	}
}

func TestUnservedVectors(t *testing.T) {
	v := load(t)
	if len(v.Unserved) == 0 {
		t.Fatal("no vectors")
	}
	for _, x := range v.Unserved {
		first, ok := wire.ParseUnserved(x.Reason)
		if ok != (x.First != nil) || ok && (first != *x.First || wire.Unserved(first) != x.Reason) {
			t.Errorf("%q is read as %d %v", x.Reason, first, ok)
		}
	}
}

// FuzzRead checks that Append writes the bytes that Read accepts.
func FuzzRead(f *testing.F) {
	v := load(f)
	for _, p := range append(v.Preambles, v.UDP.Preambles...) {
		f.Add(unhex(f, p.Hex))
	}
	for _, p := range append(v.Refused, v.UDP.Refused...) {
		f.Add(unhex(f, p.Hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		for _, kind := range []wire.StreamType{wire.TCP, wire.UDP} {
			r := bytes.NewReader(b)
			p, err := wire.Read(r, kind)
			if err != nil {
				continue
			}
			if taken := b[:len(b)-r.Len()]; !bytes.Equal(p.Append(nil), taken) {
				t.Fatalf("read %x, writes %x", taken, p.Append(nil))
			}
		}
	})
}

// FuzzCutStreamID checks that CutStreamID(AppendStreamID(x)) is x for any x that it returns. A
// varint may be longer than necessary.
func FuzzCutStreamID(f *testing.F) {
	v := load(f).UDP
	for _, x := range v.Frames {
		f.Add(unhex(f, x.Hex))
	}
	for _, x := range v.BadFrames {
		f.Add(unhex(f, x.Hex))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		stream, payload, err := wire.CutStreamID(b)
		if err != nil {
			return
		}
		if stream%4 != 0 || !bytes.HasSuffix(b, payload) {
			t.Fatalf("%x is read as stream %d, payload %x", b, stream, payload)
		}
		again, rest, err := wire.CutStreamID(append(wire.AppendStreamID(nil, stream), payload...))
		if err != nil || again != stream || !bytes.Equal(rest, payload) {
			t.Fatalf("stream %d is read as %d, %v", stream, again, err)
		}
	})
}
