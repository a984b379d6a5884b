package documents

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"github.com/florete/florete/internal/accessgrant"
	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/unixtime"
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
	s.refused = append(s.refused, refused...)
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
	refused, err := s.mergeGrants(nil)
	s.refused = append(s.refused, refused...)
	return err
}

func (s *Store) mergeGrants(grants []accessgrant.Signed) (refused []error, err error) {
	path := s.layout.AccessGrants()
	now := time.Now()
	held, damaged := accessgrant.Read(path)
	if damaged != nil {
		held = accessgrant.Held{Lost: unixtime.Of(now)}
	}
	next, refused := held.Merge(s.set.Manifest, grants, now)
	if damaged != nil {
		refused = append(refused, fmt.Errorf("all access grants from before now have ended, since their file is damaged: %w", damaged))
	}
	b := next.Encode()
	if was, err := os.ReadFile(path); err == nil && bytes.Equal(was, b) || errors.Is(err, fs.ErrNotExist) && len(next.Grants)+len(next.Over) == 0 {
		return refused, nil
	}
	s.step("save access grants")
	return refused, atomicfile.File(path, b, 0o644)
}
