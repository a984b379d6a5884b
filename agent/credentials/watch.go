package credentials

import (
	"context"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

// manifest returns the manifest in force. The manifest is decoded again only if it has changed.
func (s *server) manifest() (document.Manifest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	doc, err := s.Layout.Refresh(s.document)
	if err == nil {
		s.document = doc
	}
	return doc.Manifest(), err
}

// changes returns a channel that is closed when a file of the state directory may have changed
// since the call.
func (s *server) changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.changed
}

// watch tells waiting connections that a file may have changed: it closes the channel that the
// method changes returned. It runs until ctx ends. All connections share one watch, because the
// number of inotify instances is limited.
func (s *server) watch(ctx context.Context) {
	hostdir.Follow(ctx, s.Log, poll, func() []string {
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
