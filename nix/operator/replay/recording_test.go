package replay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"

	"github.com/florete/florete/tests/kit/replaytest"
)

// TestOpen checks what is said and played of recordings that are whole, cut off and damaged.
func TestOpen(t *testing.T) {
	key, _ := replaytest.Key(t)
	for name, c := range map[string]struct {
		session replaytest.Session
		change  func(*testing.T, string)
		end     string
		damage  string
		output  []string
	}{
		"ended":   {session: replaytest.Session{Output: []string{"one", "two"}, Ends: true}, end: "recorded", output: []string{"one", "two"}},
		"goes on": {session: replaytest.Session{Output: []string{"one", "two"}}, end: "missing: the session goes on, or was cut off", output: []string{"one", "two"}},
		"cut": {
			session: replaytest.Session{Output: []string{"one", "two"}},
			change:  func(t *testing.T, path string) { replaytest.Cut(t, path, 5) },
			end:     "missing: the last piece of the recording is incomplete", output: []string{"one"},
		},
		"damaged": {
			session: replaytest.Session{Output: []string{"one", "two"}}, change: replaytest.Damage,
			end: "missing: piece 3 of the recording: ", damage: "piece 3 of the recording: ", output: []string{"one"},
		},
		"damaged before the end": {
			session: replaytest.Session{Output: []string{"one"}},
			change: func(t *testing.T, path string) {
				replaytest.Damage(t, path)
				// more than is read at once
				appendTo(t, path, replaytest.Session{Output: slices.Repeat([]string{"three"}, 20), Ends: true}.Write(t, key))
			},
			end: "missing: piece 2 of the recording: ", damage: "piece 2 of the recording: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			path := c.session.Write(t, key)
			if c.change != nil {
				c.change(t, path)
			}
			r, err := Open(path, []age.Identity{key})
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			if (r.Damage != nil) != (c.damage != "") || r.Damage != nil && !strings.HasPrefix(r.Damage.Error(), c.damage) {
				t.Errorf("damage %v, want %q", r.Damage, c.damage)
			}
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			digest := sha256.Sum256(b)
			var said, cast bytes.Buffer
			if err := r.Print(&said); err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"caller   user/alice", "account  deploy", "service  service/shell/eu", "begin    2023-11-14T22:13:20Z", "end      " + c.end, "SHA-256  " + hex.EncodeToString(digest[:])} {
				if !strings.Contains(said.String(), want) {
					t.Errorf("no %q in\n%s", want, said.String())
				}
			}
			if err := r.WriteCast(&cast); err != nil {
				t.Error(err)
			}
			events := strings.Split(strings.TrimSpace(cast.String()), "\n")[1:]
			if r.Ended {
				events = events[:len(events)-1]
			}
			if len(events) != len(c.output) {
				t.Fatalf("events %q, want output %q", events, c.output)
			}
			for i, want := range c.output {
				if !strings.HasSuffix(events[i], `"o","`+want+`"]`) {
					t.Errorf("event %s, want output %q", events[i], want)
				}
			}
		})
	}
}

// TestGrows checks that a recording that grows after it was opened keeps its length and digest.
func TestGrows(t *testing.T) {
	key, _ := replaytest.Key(t)
	path := replaytest.Session{Output: []string{"one"}}.Write(t, key)
	r, err := Open(path, []age.Identity{key})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	var before, after bytes.Buffer
	if err := r.WriteCast(&before); err != nil {
		t.Fatal(err)
	}
	appendTo(t, path, path)
	if err := r.WriteCast(&after); err != nil || after.String() != before.String() {
		t.Errorf("%v: %s\nwas\n%s", err, after.String(), before.String())
	}
}

func TestUnopened(t *testing.T) {
	key, _ := replaytest.Key(t)
	other, _ := replaytest.Key(t)
	path := replaytest.Session{Output: []string{"one"}, Ends: true}.Write(t, key)
	text := filepath.Join(t.TempDir(), "text")
	if err := os.WriteFile(text, []byte("hello\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		path string
		key  age.Identity
		want string
	}{
		"other key": {path, other, path + ": not encrypted to " + other.Recipient().String() + ", want a key of record.recipients of the service"},
		"directory": {t.TempDir(), key, ": is no regular file, want a recording (*.cast.age)"},
		"device":    {"/dev/null", key, "/dev/null: is no regular file"},
		"text":      {text, key, text + ": no recording"},
		"missing":   {text + "s", key, "no such file"},
	} {
		if _, err := Open(c.path, []age.Identity{c.key}); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
}

func appendTo(t *testing.T, path, from string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(b); err != nil {
		t.Fatal(err)
	}
}
