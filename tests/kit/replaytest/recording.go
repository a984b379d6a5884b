// Package replaytest makes recordings for tests.
package replaytest

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"filippo.io/age"

	"github.com/florete/florete/internal/recording"
	"github.com/florete/florete/tests/kit"
)

// Begin is the time at which the sessions of all recordings begin.
var Begin = time.Unix(1700000000, 0)

// Session is a session of alice as deploy at service/shell/eu.
type Session struct {
	Command string   // empty for a login shell on a terminal; otherwise the session has no terminal
	Output  []string // each is a piece of the recording, after the first one; a tenth of a second apart
	Ends    bool     // whether the end is recorded
}

// Write records the session for a key, and returns the path of the file.
func (s Session) Write(t *testing.T, key *age.X25519Identity) (path string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "session"+recording.Suffix)
	f, err := os.Create(path)
	check(t, err)
	defer f.Close()
	now := Begin
	w, err := recording.NewWriter(f, []age.Recipient{key.Recipient()}, recording.Header{
		Command: s.Command, Title: "alice as deploy at shell@eu",
		Session: recording.Session{Service: kit.ID("service/shell/eu"), Caller: kit.ID("user/alice"), Account: "deploy", Terminal: s.Command == ""},
	}, now)
	check(t, err)
	for _, text := range s.Output {
		now = now.Add(time.Second / 10)
		w.Output(now, []byte(text))
		check(t, w.Flush())
	}
	if s.Ends {
		w.Exit(now, 0)
		check(t, w.Flush())
	}
	return path
}

// Key returns a new key, and the path of a file that contains it.
func Key(t *testing.T) (key *age.X25519Identity, path string) {
	t.Helper()
	key, err := age.GenerateX25519Identity()
	check(t, err)
	path = filepath.Join(t.TempDir(), "key")
	check(t, os.WriteFile(path, []byte(key.String()+"\n"), 0o600))
	return key, path
}

// Damage changes the last piece of a recording, and keeps its length.
func Damage(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	check(t, err)
	copy(b[len(b)-80:], "AAAAAAAAAA")
	check(t, os.WriteFile(path, b, 0o600))
}

// Cut takes bytes away from the end of a recording.
func Cut(t *testing.T, path string, bytes int64) {
	t.Helper()
	info, err := os.Stat(path)
	check(t, err)
	check(t, os.Truncate(path, info.Size()-bytes))
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
