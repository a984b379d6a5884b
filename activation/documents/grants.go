package documents

import (
	"bytes"
	"os"
	"sync"
	"time"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostapi"
)

// offered names the access grants that a provider offered last, by their tag, and the documents by
// which they were verified. A grant that was refused can be valid under other documents.
type offered struct {
	mu   sync.Mutex
	tag  string
	with string // tag of the documents
}

// GrantsTag returns the tag of the access grants that the host received last, for requests to
// providers. It returns "" if no role of the manifest can be requested. It is safe for concurrent
// use.
func (s *Store) GrantsTag() string {
	s.offered.mu.Lock()
	defer s.offered.mu.Unlock()
	return s.offered.tag
}

// ExpectGrants prepares GrantsTag for the documents in force.
func (s *Store) ExpectGrants() {
	s.offered.mu.Lock()
	defer s.offered.mu.Unlock()
	switch with := s.set.Tag(); {
	case len(s.set.Manifest.Requests) == 0:
		s.offered.tag = ""
	case s.offered.tag == "" || s.offered.with != with:
		s.offered.tag, s.offered.with = hostapi.NoGrants, with
	}
}

// acceptGrants adds the access grants that a provider offers to those of the host. It refuses grants
// that the manifest does not permit, and accepts the others.
func (s *Store) acceptGrants(grants hostapi.Grants) *hostapi.Error {
	if len(s.set.Manifest.Requests) == 0 {
		return nil
	}
	unlock, err := lock(s.layout)
	if err != nil {
		return hostapi.Errorf(CodeDisk, "%v", err)
	}
	defer unlock()
	refused, err := s.mergeGrants(grants)
	if err != nil {
		return hostapi.Errorf(CodeDisk, "%v", err)
	}
	s.offered.mu.Lock()
	s.offered.tag, s.offered.with = grants.Tag(), s.set.Tag()
	s.offered.mu.Unlock()
	s.refused = refused
	return nil
}

// RefusedGrants returns why access grants were refused since the last call. A provider that runs
// under other documents can offer some without being at fault.
func (s *Store) RefusedGrants() (refused []error) {
	refused, s.refused = s.refused, nil
	return refused
}

// EndGrants removes the access grants that have ended from those of the host.
func (s *Store) EndGrants() error {
	if len(s.set.Manifest.Requests) == 0 {
		return nil
	}
	_, err := s.mergeGrants(nil)
	return err
}

func (s *Store) mergeGrants(grants []accessgrant.Signed) (refused []error, err error) {
	path := s.layout.AccessGrants()
	held, err := accessgrant.Read(path)
	if err != nil { // damaged; a provider has the grants
		held = accessgrant.Held{}
	}
	next, refused := held.Merge(s.set.Manifest, grants, time.Now())
	b := next.Encode()
	if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, b) || err != nil && len(next.Grants)+len(next.Over) == 0 {
		return refused, nil
	}
	s.step("save access grants")
	return refused, atomicfile.File(path, b, 0o644)
}
