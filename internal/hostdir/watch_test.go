package hostdir

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"
)

// long is a poll interval that is longer than a test.
const long = time.Hour

// TestFollow checks that files are read again after a change in a directory. This must work even if
// the directory did not exist before.
func TestFollow(t *testing.T) {
	dir := t.TempDir()
	sub := filepath.Join(dir, "a", "b")
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	seen := make(chan []string)
	done := make(chan struct{})
	go func() {
		defer close(done)
		Follow(ctx, slog.New(slog.DiscardHandler), long, func() []string {
			var names []string
			entries, _ := os.ReadDir(sub)
			for _, e := range entries {
				names = append(names, e.Name())
			}
			select {
			case seen <- names:
			case <-ctx.Done():
			}
			return []string{sub}
		})
	}()
	until := func(want ...string) {
		t.Helper()
		for {
			select {
			case got := <-seen:
				if slices.Equal(got, want) {
					return
				}
			case <-ctx.Done():
				t.Fatalf("never read as %v", want)
			}
		}
	}
	change := func(name string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(sub, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	until()
	if err := os.MkdirAll(sub, 0o700); err != nil {
		t.Fatal(err)
	}
	change("one")
	until("one")
	change("two")
	until("one", "two")
	cancel()
	<-done
}

// TestPoll checks that files are read at each poll interval if inotify is not available.
func TestPoll(t *testing.T) {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	w := &Watcher{log: slog.New(slog.DiscardHandler)}
	defer w.Close()
	if w.Watch([]string{t.TempDir()}) || !w.Wait(ctx, time.Millisecond) {
		t.Error("the disk is not read again")
	}
	cancel()
	if w.Wait(ctx, long) {
		t.Error("the disk is read again after the end")
	}
}

// TestWatch checks that a directory that is no longer wanted is no longer watched.
func TestWatch(t *testing.T) {
	one, two := t.TempDir(), t.TempDir()
	w := NewWatcher(slog.New(slog.DiscardHandler))
	defer w.Close()
	for _, c := range []struct {
		dirs  []string
		added bool
	}{{[]string{one}, true}, {[]string{one}, false}, {[]string{two}, true}, {nil, false}} {
		if added := w.Watch(c.dirs); added != c.added {
			t.Errorf("%v: added %t, want %t", c.dirs, added, c.added)
		}
		if got := w.inotify.WatchList(); !slices.Equal(got, c.dirs) {
			t.Errorf("watches %v, want %v", got, c.dirs)
		}
	}
}
