package agent

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

// settle is how long a burst of changes may go on before the disk is read.
const settle = 20 * time.Millisecond

// watcher tells when something below some directories may have changed. Without
// inotify, polling alone does.
type watcher struct {
	*fsnotify.Watcher
	events <-chan fsnotify.Event
	errors <-chan error
	log    *slog.Logger
}

func newWatcher(log *slog.Logger) *watcher {
	fs, err := fsnotify.NewWatcher()
	if err != nil {
		log.Warn("polling only", "error", err)
		return &watcher{log: log}
	}
	return &watcher{Watcher: fs, events: fs.Events, errors: fs.Errors, log: log}
}

func (w *watcher) close() {
	if w.Watcher != nil {
		w.Close()
	}
}

// watch makes dirs what is watched; one that does not exist yet by its nearest
// ancestor. It returns true when one is newly watched, so that what it holds may
// have changed since it was read.
func (w *watcher) watch(dirs []string) (added bool) {
	if w.Watcher == nil {
		return false
	}
	watched := w.WatchList()
	var wanted []string
	for _, d := range dirs {
		wanted = append(wanted, nearest(d))
	}
	for _, d := range wanted {
		if slices.Contains(watched, d) {
			continue
		}
		if err := w.Add(d); err != nil {
			w.log.Debug("not watched", "error", err)
			continue
		}
		added = true
	}
	for _, d := range watched {
		if !slices.Contains(wanted, d) {
			w.Remove(d)
		}
	}
	return added
}

// nearest is dir or the first directory above it that exists.
func nearest(dir string) string {
	for {
		up := filepath.Dir(dir)
		if _, err := os.Stat(dir); err == nil || up == dir {
			return dir
		}
		dir = up
	}
}

// wait returns true when the disk should be read again, false when ctx ended.
func (w *watcher) wait(ctx context.Context, poll time.Duration) bool {
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

// directories are where activation swaps a symlink or makes a directory.
func (a *agent) directories() []string {
	dirs := []string{string(a.Layout), a.Layout.Documents(), a.Layout.Need("")}
	for _, n := range a.snapshot.Load().manifest.Needs {
		if n.Kind == "cert" {
			dirs = append(dirs, a.Layout.Need(n.ID))
		}
	}
	return dirs
}
