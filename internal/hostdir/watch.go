package hostdir

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fsnotify/fsnotify"
)

// settle is the time to wait for more changes after a change, before the files are read.
const settle = 20 * time.Millisecond

// Watcher notices changes in directories with inotify. If the account has no inotify instance left,
// the Watcher only polls.
type Watcher struct {
	inotify *fsnotify.Watcher
	events  <-chan fsnotify.Event
	errors  <-chan error
	log     *slog.Logger
}

// Follow calls read at once, and again whenever files in certain directories may have changed,
// until ctx ends. The function read returns these directories. Follow calls it at least once in
// each interval poll.
func Follow(ctx context.Context, log *slog.Logger, poll time.Duration, read func() (dirs []string)) {
	w := NewWatcher(log)
	defer w.Close()
	for w.Watch(read()) || w.Wait(ctx, poll) {
		// A directory that was added may have changed since it was read.
	}
}

// NewWatcher returns a Watcher without directories. The caller must call Close.
func NewWatcher(log *slog.Logger) *Watcher {
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("polling only", "error", err)
		return &Watcher{log: log}
	}
	return &Watcher{inotify: fs, events: fs.Events, errors: fs.Errors, log: log}
}

// Close stops the Watcher and releases its inotify instance.
func (w *Watcher) Close() {
	if w.inotify != nil {
		w.inotify.Close()
	}
}

// Watch replaces the directories that the Watcher watches. For a directory that does not exist, it
// watches the nearest existing parent. Watch returns true if it has added a directory, whose
// content may have changed since the caller read it.
func (w *Watcher) Watch(dirs []string) (added bool) {
	if w.inotify == nil {
		return false
	}
	watched := w.inotify.WatchList()
	var wanted []string
	for _, d := range dirs {
		wanted = append(wanted, nearestParent(d))
	}
	for _, d := range wanted {
		if slices.Contains(watched, d) {
			continue
		}
		if err := w.inotify.Add(d); err != nil {
			w.log.Debug("not watched", "error", err)
			continue
		}
		added = true
	}
	for _, d := range watched {
		if !slices.Contains(wanted, d) {
			_ = w.inotify.Remove(d)
		}
	}
	return added
}

// nearestParent returns the directory itself if it exists, and otherwise its nearest parent that
// exists.
func nearestParent(dir string) string {
	for {
		up := filepath.Dir(dir)
		if _, err := os.Stat(dir); err == nil || up == dir {
			return dir
		}
		dir = up
	}
}

// Wait waits until files may have changed, but at most for the duration poll. It returns true if
// the caller must read the files again, and false if ctx has ended.
func (w *Watcher) Wait(ctx context.Context, poll time.Duration) bool {
	timer := time.NewTimer(poll)
	defer timer.Stop()
	settling := sync.OnceFunc(func() { timer.Reset(settle) })
	for {
		select {
		case <-ctx.Done():
			return false
		case <-timer.C:
			return true
		case <-w.events:
			settling()
		case err := <-w.errors:
			w.log.Warn("watching", "error", err)
			settling()
		}
	}
}
