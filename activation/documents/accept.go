package documents

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/signers"
)

// Codes of the errors with which a host refuses documents from the network.
var (
	CodeOlder    = hostapi.Code{Name: "older-document", Class: hostapi.Transient} // the provider does not have the newest documents yet
	CodeTampered = hostapi.Code{Name: "tampered", Class: hostapi.Denied}          // the digest or the signature is wrong
	CodeForeign  = hostapi.Code{Name: "foreign-document", Class: hostapi.Denied}  // the document is for another host
	CodeDisk     = hostapi.Code{Name: "disk", Class: hostapi.Transient}           // the state directory cannot be written
	CodePending  = hostapi.Code{Name: "change-pending", Class: hostapi.Transient} // a change must be confirmed or rolled back first
	CodeHeld     = hostapi.Code{Name: "held", Class: hostapi.Transient}           // an operator has suspended new documents, see Hold
	CodeUnarmed  = hostapi.Code{Name: "change-unarmed", Class: hostapi.Transient} // the process that would roll the documents back cannot be started
)

// Offer is a set of documents that was received from the network and verified, but is not in force
// yet.
type Offer struct {
	Set      Set
	Changed  bool // the set differs from the documents in force
	received map[string]document.Document
}

// Accept verifies documents and a revocation list that a provider returned, and puts them in force.
// Afterwards, Set returns the documents in force.
//
// The following rules apply:
//
//   - Either all of the documents come into force, or none of them.
//   - If s.Arm is set and the content of a document changes, the documents are put in force as an
//     unattended change, which is rolled back unless a provider answers under it.
//   - If the provider sends no policy, the old policy stays in force. A provider that withholds
//     documents thus cannot remove them.
//   - While a change is pending, or an operator has suspended new documents with Hold, other
//     documents are refused.
//   - A newer revocation list is accepted in any case, and so are access grants.
func (s *Store) Accept(ctx context.Context, a hostapi.Artifact) *hostapi.Error {
	if a.NotModified {
		return s.confirm(a.Has)
	}
	e := s.acceptDocuments(ctx, a)
	if a.Revocations != nil { // regardless of the result for the documents
		if refused := s.acceptRevocations(*a.Revocations); e == nil {
			e = refused
		}
	}
	if a.Grants != nil {
		if refused := s.acceptGrants(*a.Grants); e == nil {
			e = refused
		}
	}
	return e
}

// confirm records that the network has the documents in force, after a provider answered that the
// documents with this tag are the newest. From then on, the host refuses an older document from the
// network. If the tag belongs to other documents, confirm does nothing.
func (s *Store) confirm(tag string) *hostapi.Error {
	if s.confirmed() {
		return nil
	}
	unlock, err := lock(s.layout)
	if err != nil {
		return hostapi.Errorf(CodeDisk, "%v", err)
	}
	defer unlock()
	if _, err := s.refresh(); err != nil {
		return hostapi.Errorf(CodeDisk, "%v", err)
	}
	if s.confirmed() || s.set.Tag() != tag {
		return nil
	}
	for _, e := range s.set.envelopes() {
		s.record.noteFromNetwork(e)
	}
	s.step("save record")
	if err := s.record.save(s.layout.State()); err != nil {
		return hostapi.Errorf(CodeDisk, "%v", err)
	}
	return nil
}

// confirmed reports whether it is on record that the network has each of the documents in force, or
// a newer version.
func (s *Store) confirmed() bool {
	return !slices.ContainsFunc(s.set.envelopes(), func(e document.Envelope) bool { return e.Newer(s.record.newest(e.Kind)) })
}

func (s *Store) acceptDocuments(ctx context.Context, a hostapi.Artifact) *hostapi.Error {
	if a.Unchanged() {
		return nil
	}
	unlock, err := lock(s.layout)
	if err != nil {
		return hostapi.Errorf(CodeDisk, "%v", err)
	}
	defer unlock()
	if _, err := s.refresh(); err != nil {
		return hostapi.Errorf(CodeDisk, "%v", err)
	}
	o, e := s.Verify(a)
	if e != nil {
		return e
	}
	if o.Changed {
		if err := s.dropUnchanged(); err != nil {
			return hostapi.Errorf(CodeDisk, "%v", err)
		}
		if err := s.NoneIsPending(); err != nil {
			return hostapi.Errorf(CodePending, "document from the network: %v", err)
		}
		if err := s.isHeld(); err != nil {
			return hostapi.Errorf(CodeHeld, "document from the network: %v", err)
		}
	}
	if s.Arm != nil && !slices.Equal(o.Set.contents(), s.set.contents()) {
		err = s.beginUnattended(ctx, o)
	} else {
		err = s.replace(o)
	}
	var unarmed *armError
	switch {
	case errors.As(err, &unarmed):
		return hostapi.Errorf(CodeUnarmed, "document from the network: nobody would go back from it: %v", err)
	case err != nil:
		return hostapi.Errorf(CodeDisk, "%v", err)
	}
	return nil
}

// Verify checks the signatures, the host and the versions of documents from the network, and
// returns them as an Offer. Unlike Accept, it does not put them in force.
func (s *Store) Verify(a hostapi.Artifact) (Offer, *hostapi.Error) {
	if a.Unchanged() {
		return Offer{Set: s.set}, nil
	}
	byKind := map[string]document.Document{}
	for _, raw := range a.Documents {
		d, err := document.Open([]byte(raw.Envelope), []byte(raw.Body), raw.Signature)
		var newer *document.NewerFormatError
		if errors.As(err, &newer) {
			return Offer{}, hostapi.Errorf(hostapi.CodeNewerFormat, "document from the network: %v", err)
		}
		if err != nil {
			return Offer{}, hostapi.Errorf(CodeTampered, "document from the network: %v", err)
		}
		if _, twice := byKind[d.Envelope.Kind]; twice {
			return Offer{}, hostapi.Errorf(hostapi.CodeMalformedDenied, "two documents of kind %s from the network", d.Envelope.Kind)
		}
		byKind[d.Envelope.Kind] = d
	}
	manifest, ok := byKind[document.DocManifest]
	if !ok {
		return Offer{}, hostapi.Errorf(hostapi.CodeMissing, "the provider has no manifest for %s yet: publish it", s.set.Manifest.Host)
	}
	set := s.set
	pins := []signers.Set{s.set.Manifest.Trust.Signers()}
	newer, e := s.newer(manifest, s.set.Document.Envelope, pins)
	if e != nil {
		return Offer{}, e
	}
	if newer {
		m, err := newSet(manifest, nil)
		if err != nil {
			return Offer{}, hostapi.Errorf(hostapi.CodeMalformedDenied, "document from the network: %v", err)
		}
		m.Policy = set.Policy
		set = m
		pins = append(pins, m.Manifest.Trust.Signers())
	}
	changed := newer
	if policy, ok := byKind[document.DocPolicy]; ok {
		var held document.Envelope
		if set.Policy != nil {
			held = set.Policy.Envelope
		}
		newer, e := s.newer(policy, held, pins)
		if e != nil {
			return Offer{}, e
		}
		if newer {
			set.Policy, changed = &policy, true
		}
	}
	return Offer{Set: set, Changed: changed, received: byKind}, nil
}

// newer verifies a document from the network and reports whether it is newer than every earlier
// version that counts (record.minVersion). If the document is older than one that the network has
// already delivered, newer returns an error. It returns false without an error for the current
// version. It does the same for an older version if the operator's closure is ahead of the
// published documents.
func (s *Store) newer(d document.Document, held document.Envelope, pins []signers.Set) (bool, *hostapi.Error) {
	if err := d.VerifyAny(pins...); err != nil {
		return false, hostapi.Errorf(CodeTampered, "document from the network: %v: publish with %s that this host pins, or deploy its closure", err, keysNeeded(pins[0]))
	}
	e, m := d.Envelope, s.set.Manifest
	if e.Host != m.Host || e.Cluster != m.Cluster {
		return false, hostapi.Errorf(CodeForeign, "document from the network: %s is for %s/%s, this host is %s/%s", e.Kind, e.Cluster, e.Host, m.Cluster, m.Host)
	}
	least := s.record.minVersion(e.Kind, held)
	if e.Newer(least) || s.lost(e, held) {
		return true, nil
	}
	if s.record.newest(e.Kind).Newer(e) {
		return false, hostapi.Errorf(CodeOlder, "document from the network: %s has serial %d, this host has already accepted serial %d: publish a newer one, or go back by deploying the closure", e.Kind, e.Serial, least.Serial)
	}
	return false, nil
}

// keysNeeded returns how many keys must sign a document, as words for an error message, such as "a
// key" or "2 keys".
func keysNeeded(by signers.Set) string {
	if by.Need() == 1 {
		return "a key"
	}
	return fmt.Sprintf("%d keys", by.Need())
}

// lost reports whether a document was lost by a damaged disk. This is so if the document is the
// newest one that the network delivered, but is not in force, although it was never rolled back.
func (s *Store) lost(e, held document.Envelope) bool {
	same := func(v document.Envelope) bool { return v.Serial == e.Serial && v.Digest == e.Digest }
	back := s.record.newest(undone + e.Kind)
	if !same(s.record.newest(e.Kind)) || !e.Newer(held) || same(back) || back.Newer(e) {
		return false
	}
	c, err := s.layout.Undone()
	return err == nil && (c == nil || !slices.Contains(c.Documents, document.ReportedOf(e)))
}

// replace puts an offer in force if it differs from the documents in force. It also records that the
// network has delivered this version.
func (s *Store) replace(o Offer) error {
	if o.Changed {
		if err := s.put(o.Set); err != nil {
			return err
		}
	}
	save := false
	for _, d := range o.received {
		save = s.record.noteFromNetwork(d.Envelope) || save
	}
	if !save {
		return nil
	}
	s.step("save record")
	return s.record.save(s.layout.State())
}
