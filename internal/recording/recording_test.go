package recording_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/florete/florete/internal/recording"
	"github.com/florete/florete/tests/kit"
)

// record makes a recording, and returns the content of its file after each Flush.
func record(t *testing.T, to *age.X25519Identity) (states [][]byte) {
	t.Helper()
	f, err := os.Create(filepath.Join(t.TempDir(), "recording"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	begun := time.Unix(1700000000, 0)
	w, err := recording.NewWriter(f, []age.Recipient{to.Recipient()}, recording.Header{
		Width: 100, Title: "alice as deploy at shell@eu",
		Session: recording.Session{Service: kit.ID("service/shell/eu"), Caller: kit.ID("user/alice"), Account: "deploy", Terminal: true},
	}, begun)
	flush := func() {
		if err == nil {
			err = w.Flush()
		}
		if err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(f.Name())
		if err != nil {
			t.Fatal(err)
		}
		if n, _ := w.Written(); n != int64(len(b)) {
			t.Fatalf("%d bytes in the file, told %d", len(b), n)
		}
		states = append(states, b)
	}
	flush()
	euro := "€"
	w.Output(begun.Add(time.Second/2), []byte("5 "+euro[:1]))
	w.Output(begun.Add(time.Second), []byte(euro[1:]+"\xff\r\n"))
	w.Resize(begun.Add(2*time.Second), 0, 5000)
	flush()
	w.Output(begun.Add(3*time.Second), []byte("end"+euro[:2]))
	w.Exit(begun.Add(4*time.Second), 7)
	flush()
	flush() // nothing to write
	return states
}

const cast = `{"version":2,"width":100,"height":24,"timestamp":1700000000,"title":"alice as deploy at shell@eu","florete":{"service":"spiffe://demo.flor/service/shell/eu","caller":"spiffe://demo.flor/user/alice","account":"deploy","terminal":true}}
[0.5,"o","5 "]
[1,"o","€\ufffd\r\n"]
[2,"r","80x1000"]
[3,"o","end"]
[4,"o","\ufffd\ufffd"]
[4,"x","7"]
`

func identity(t *testing.T) *age.X25519Identity {
	t.Helper()
	i, err := age.GenerateX25519Identity()
	if err != nil {
		t.Fatal(err)
	}
	return i
}

// TestKilled checks what can be read of a recording whose writer was killed after any byte: all pieces
// that were flushed, and nothing else.
func TestKilled(t *testing.T) {
	key := identity(t)
	states := record(t, key)
	lines := strings.SplitAfter(cast, "\n")
	all := states[len(states)-1]
	for n := range len(all) + 1 {
		var want string
		ended, cut := false, true
		for i, state := range states {
			if len(state) <= n {
				want = strings.Join(lines[:[]int{1, 4, 7, 7}[i]], "")
				ended, cut = i >= 2, cut && len(state) != n
			}
		}
		var got bytes.Buffer
		r, err := recording.Open(bytes.NewReader(all[:n]), []age.Identity{key}, &got)
		if n < len(states[0]) {
			if err == nil || !strings.Contains(err.Error(), "no recording") {
				t.Fatalf("%d bytes: %v", n, err)
			}
			continue
		}
		if err != nil || got.String() != want || r.Ended != ended || r.Cut != cut {
			t.Fatalf("%d bytes: %v, ended %v, cut %v, want %v, %v:\n%s\nwant\n%s", n, err, r.Ended, r.Cut, ended, cut, got.String(), want)
		}
	}
	var r recording.Read
	if err := json.Unmarshal([]byte(lines[0]), &r.Header); err != nil || r.Session.Account != "deploy" {
		t.Errorf("header %+v, %v", r.Header, err)
	}
}

// TestPlain checks that the lines of a session without a terminal begin at the left.
func TestPlain(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "recording"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	key, now := identity(t), time.Unix(1700000000, 0)
	h := recording.Header{Session: recording.Session{Service: kit.ID("service/shell"), Caller: kit.ID("user/alice")}}
	w, err := recording.NewWriter(f, []age.Recipient{key.Recipient()}, h, now)
	if err != nil {
		t.Fatal(err)
	}
	w.Output(now, []byte("one\ntwo\n"))
	if err := w.Flush(); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		t.Fatal(err)
	}
	if _, err := recording.Open(f, []age.Identity{key}, &got); err != nil || !strings.HasSuffix(got.String(), `[0,"o","one\r\ntwo\r\n"]`+"\n") {
		t.Errorf("%v: %s", err, got.String())
	}
}

// TestDamaged checks that a piece that was changed, moved or sealed to somebody else is named.
func TestDamaged(t *testing.T) {
	key := identity(t)
	states := record(t, key)
	first, second, all := states[0], states[1], states[2]
	for name, c := range map[string]struct {
		bytes []byte
		key   age.Identity
		want  string
	}{
		"another key":   {all, identity(t), "piece 1 of the recording: sealed with age: identity did not match"},
		"changed":       {bytes.Replace(all, second[len(second)-60:len(second)-50], []byte("AAAAAAAAAA"), 1), key, "piece 2 of the recording"},
		"without first": {all[len(first):], key, "piece 1 of the recording: header"},
		"no recording":  {[]byte("hello\n"), key, "no recording"},
		"empty":         {nil, key, "no recording"},
		"other text":    {append(bytes.Clone(first), bytes.Repeat([]byte("x"), 5000)...), key, "piece 2 of the recording: no armor"},
	} {
		var got bytes.Buffer
		if _, err := recording.Open(bytes.NewReader(c.bytes), []age.Identity{c.key}, &got); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}
