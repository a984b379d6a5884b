package journal

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"regexp"
	"sync"
	"syscall"
	"testing"
)

func write(l *slog.Logger) {
	l.Info("serving")
	l.With("caller", "a b").WithGroup("g").Warn("no access", "service", "wiki")
	l.Error("two\nlines", "level", "x\ny", "err", nil)
	l.Debug("never")
}

func TestElsewhere(t *testing.T) {
	var out bytes.Buffer
	write(New(&out))
	at := `\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ `
	want := "^" + at + "INFO serving\n" + at + "WARN no access caller=\"a b\" g.service=wiki\n" + at + "ERROR two lines level=\"x\\\\ny\" err=<nil>\n$"
	if !regexp.MustCompile(want).Match(out.Bytes()) {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestJournal checks the lines for systemd's journal. A file takes the place of the stream that
// systemd connects.
func TestJournal(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "stream"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if Prefix(f, slog.LevelWarn) != "" {
		t.Error("a file is taken for the journal")
	}
	info, err := f.Stat()
	if err != nil {
		t.Fatal(err)
	}
	st := info.Sys().(*syscall.Stat_t)
	t.Setenv("JOURNAL_STREAM", fmt.Sprintf("%d:%d", st.Dev, st.Ino))
	write(New(f))
	b, err := os.ReadFile(f.Name())
	if want := "<6>serving\n<4>no access caller=\"a b\" g.service=wiki\n<3>two lines level=\"x\\ny\" err=<nil>\n"; err != nil || string(b) != want {
		t.Errorf("%v: got\n%swant\n%s", err, b, want)
	}
	if got := Prefix(f, slog.LevelWarn); got != "<4>" {
		t.Errorf("prefix %q", got)
	}
}

func TestConcurrentLines(t *testing.T) {
	var out bytes.Buffer
	l := New(&out)
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 100 {
				l.With("a", 1).Info("line", "b", 2)
			}
		})
	}
	all.Wait()
	if n := len(regexp.MustCompile(`(?m)^\S+ INFO line a=1 b=2$`).FindAll(out.Bytes(), -1)); n != 800 {
		t.Errorf("%d whole lines, want 800", n)
	}
}
