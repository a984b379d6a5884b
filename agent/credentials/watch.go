package credentials

import (
	"context"

	"github.com/florete/florete/agent/watch"
	"github.com/florete/florete/internal/document"
)

// manifest returns the manifest in force. It is decoded only after a change.
func (s *server) manifest() (document.Manifest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	doc, err := s.Layout.Refresh(s.document)
	if err == nil {
		s.document = doc
	}
	return doc.Manifest(), err
}

// changes returns a channel that is closed when files may have changed since the call.
func (s *server) changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// watch closes changes until ctx ends. One watch serves all connections, because inotify instances
// are limited.
func (s *server) watch(ctx context.Context) {
	watch.Follow(ctx, s.Log, poll, func() []string {
		s.mu.Lock()
		close(s.changed)
		s.changed = make(chan struct{})
		s.mu.Unlock()
		dirs := []string{s.Layout.Documents(), s.Layout.Need("")}
		m, _ := s.manifest()
		for _, n := range m.Needs {
			dirs = append(dirs, s.Layout.Need(n.ID))
		}
		return dirs
	})
}
