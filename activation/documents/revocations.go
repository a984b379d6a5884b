package documents

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/trust"
)

// acceptRevocations puts a revocation list in force if it is newer than the present one. An older
// list is ignored. Providers that were restored from a backup may return one.
func (s *Store) acceptRevocations(signed trust.SignedRevocations) *hostapi.Error {
	list, err := signed.Open()
	var newer *document.NewerFormatError
	if errors.As(err, &newer) {
		return hostapi.Errorf(hostapi.CodeNewerFormat, "from the network: %v", err)
	}
	if err == nil {
		if s.hasList(list) {
			return nil // it was verified before, perhaps under a lower threshold
		}
		m := s.set.Manifest
		if err = signed.Verify(list, m.Cluster, m.Trust.Signers()); err != nil {
			err = fmt.Errorf("%w: sign it with %s that this host pins: florctl revoke --renew", err, keysNeeded(m.Trust.Signers()))
		}
	}
	if err != nil {
		return hostapi.Errorf(CodeTampered, "from the network: %v", err)
	}
	unlock, err := lock(s.layout)
	if err != nil {
		return hostapi.Errorf(CodeDisk, "%v", err)
	}
	defer unlock()
	path := s.layout.Revocations()
	if held, err := trust.ReadRevocations(path, s.list); err == nil && held.Newer(s.list) {
		s.list = held
	}
	if !list.Newer(s.list) {
		return nil
	}
	if err := list.Follows(s.list); err != nil {
		return hostapi.Errorf(CodeTampered, "from the network: %v", err)
	}
	b, err := json.Marshal(signed)
	if err == nil {
		s.step("save revocations")
		err = atomicfile.File(path, append(b, '\n'), 0o644)
	}
	if err == nil {
		s.list, err = trust.ReadRevocations(path, nil)
	}
	if err != nil {
		return hostapi.Errorf(CodeDisk, "%v", err)
	}
	return nil
}

// hasList reports whether the given list is byte for byte the revocation list in force.
func (s *Store) hasList(list *trust.Revocations) bool {
	held, err := trust.ReadRevocations(s.layout.Revocations(), s.list)
	return err == nil && held != nil && held.AsSigned().List == list.AsSigned().List
}
