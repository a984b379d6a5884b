// Package documents decides which documents are in force on a host. Documents come from two
// sources:
//
//   - The closure is a directory that the operator's deployment names. It is trusted without a
//     signature and may contain older documents. A closure that has changed since it was last seen
//     takes precedence over all other documents.
//   - Documents from the network must be signed by a key that the manifest in force contains. They
//     must be for this host. They must also be newer, by serial and digest, than the documents in
//     force, than all documents received before, and than all documents that an operator rolled
//     back.
//
// The revocation list comes only from the network and is signed in the same way as documents. Its
// number only grows, and it is never rolled back (Layout.Revocations).
//
// The documents in force form one generation of Layout.Documents. Layout.State records which
// documents were seen from each source. A new generation is put in force before the record is
// written. If the process dies in between, it accepts the same documents again after the restart,
// which changes nothing.
package documents

import (
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/activation/delivery"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/trust"
)

// Set contains the documents that are in force together on a host.
type Set struct {
	Document document.Document // document that contains the manifest
	Manifest document.Manifest
	Roots    *trust.Roots       // roots of trust; in the result of Store.Set, they include the revocation list
	Policy   *document.Document // document that contains the policy; nil if the host is not a provider host

	// Generation is the number of the generation in Layout.Documents that contains the set.
	Generation int
}

// Store holds the documents of one host and decides which of them are in force.
type Store struct {
	// Arm and Timeout are used for the changes that Accept begins. If Arm is nil, Accept puts
	// documents in force permanently.
	Arm     Arm
	Timeout time.Duration

	layout  hostdir.Layout
	closure string
	dir     delivery.Dir
	record  record
	set     Set
	waits   bool               // a changed closure waits for the end of the pending change
	list    *trust.Revocations // revocation list in force; nil if there is none

	verified *trust.Verified
	offered  offered
	refused  []error // see RefusedGrants
}

// chains is the number of verified certificate chains that a host caches. It is enough for the
// host's own chains and those of its providers.
const chains = 64

// Open returns the store of a host's documents. The parameter closure is the directory with the
// documents of the installed system, or empty. If its documents have changed, Open puts them in
// force, because they take precedence over documents from the network. The note describes the
// result for people. If step is not nil, it is called before each change on disk, for tests.
func Open(l hostdir.Layout, closure string, step func(string)) (s *Store, note string, err error) {
	unlock, err := lock(l)
	if err != nil {
		return nil, "", err
	}
	defer unlock()
	s = &Store{layout: l, closure: closure, dir: dirOf(l, step), verified: trust.NewVerified(chains)}
	if err := s.dir.Clean(); err != nil {
		return nil, "", err
	}
	if note, err = s.open(); err != nil {
		return nil, "", err
	}
	if s.list, err = trust.ReadRevocations(l.Revocations(), nil); err != nil {
		note += fmt.Sprintf("; no revocation list is in force until one is fetched: %v", err)
	}
	return s, note, nil
}

// dirOf returns the directory with the generations of documents. It ensures that the generation to
// which a pending change would be rolled back is kept.
func dirOf(l hostdir.Layout, step func(string)) delivery.Dir {
	d := delivery.Dir{Path: l.Documents(), Step: step}
	if c, _ := l.PendingChange(); c != nil {
		d.Keep = c.Generation
	}
	return d
}

// Refresh loads documents that another process has put in force. The note describes the change for
// people, and is empty if there is none.
func (s *Store) Refresh() (note string, err error) {
	if changed, err := s.outdated(); err != nil || !changed {
		return "", err
	}
	unlock, err := lock(s.layout)
	if err != nil {
		return "", err
	}
	defer unlock()
	return s.refresh()
}

func (s *Store) refresh() (note string, err error) {
	if changed, err := s.outdated(); err != nil || !changed {
		return "", err
	}
	return s.open()
}

// outdated reports whether Set no longer returns the documents in force, or whether a closure that
// had to wait can be put in force now.
func (s *Store) outdated() (bool, error) {
	n, err := s.dir.Current()
	return n != s.set.Generation || s.waits && s.closureWaits() == nil, err
}

// open puts the documents of the closure in force if the closure has changed. Otherwise it keeps
// the documents in force.
func (s *Store) open() (note string, err error) {
	l := s.layout
	s.waits, s.dir = false, dirOf(l, s.dir.Step)
	var unrecorded error
	s.record, unrecorded = loadRecord(l.State())
	held, heldErr := s.held()
	damage := heldErr
	if s.damaged(damage) {
		held, heldErr = s.recover(damage)
	}
	// keep keeps the held documents, and puts them in force if they replace damaged ones.
	keep := func(why string) (string, error) {
		if s.set = held; damage == nil {
			s.copy(held)
			return why, nil
		}
		why = fmt.Sprintf("restored, because what was in force cannot be read (%v)", damage)
		return why, s.put(held)
	}
	if s.closure == "" {
		if heldErr != nil {
			return "", fmt.Errorf("no documents: %w: name the host's closure with --closure", heldErr)
		}
		return keep("unchanged")
	}
	set, err := readSet(s.closure, held)
	var newer *document.NewerFormatError
	if errors.As(err, &newer) && heldErr == nil {
		note, err := keep(fmt.Sprintf("kept, because the closure has a %v", newer))
		return note, errors.Join(err, noteClosure(l, newer))
	}
	if err != nil {
		return "", fmt.Errorf("closure: %w", err)
	}
	if err := noteClosure(l, nil); err != nil {
		return "", err
	}
	seen := set.digest()
	if unrecorded != nil && heldErr == nil && held.Document.Envelope.Newer(set.Document.Envelope) {
		s.record.begin(seen, held)
		note, err := keep(fmt.Sprintf("kept, because it is newer than the closure, and its record is made anew (%v)", unrecorded))
		return note, errors.Join(err, s.record.save(l.State()))
	}
	if heldErr == nil && s.record.Closure == seen {
		return keep("unchanged")
	}
	if err := s.closureWaits(); err != nil && heldErr == nil {
		s.waits = true
		return keep(fmt.Sprintf("kept, and the closure waits: %v", err))
	}
	if accepted, known := s.roots(); s.damaged(heldErr) && s.record.Closure == seen && known && foreignRoot(set, accepted) {
		return "", fmt.Errorf("documents: %w; the closure, which is older, has a root that they had no more: deploy this host's newest bundle or system", heldErr)
	}
	if heldErr == nil && s.record.noteRollback(held, set) {
		if err := s.record.save(l.State()); err != nil {
			return "", err
		}
	}
	if err := s.put(set); err != nil {
		return "", err
	}
	s.record.Closure = seen
	if err := s.record.save(l.State()); err != nil {
		return "", err
	}
	note = "taken from the closure"
	if heldErr != nil && !errors.Is(damage, fs.ErrNotExist) {
		note += fmt.Sprintf(", because what was in force cannot be read (%v)", damage)
	}
	return note, nil
}

// Set returns the documents in force, as they were last read.
func (s *Store) Set() Set {
	set := s.set
	set.Roots = set.Roots.With(s.list).Remembering(s.verified)
	return set
}

// held reads the documents of the current generation from disk. It decodes only those that differ
// from the documents in s.set.
func (s *Store) held() (Set, error) {
	set, err := readSet(hostdir.Current(s.dir.Path), s.set)
	if err != nil {
		return Set{}, err
	}
	set.Generation, err = s.dir.Current()
	return set, err
}

// put puts a set of documents in force.
func (s *Store) put(set Set) error {
	var err error
	if set.Generation, err = s.dir.Deliver(set.files()); err != nil {
		return fmt.Errorf("documents: %w", err)
	}
	s.set = set
	s.copy(set)
	return nil
}

// files returns the files in which a set is stored, by name.
func (s Set) files() map[string]delivery.File {
	files := map[string]delivery.File{}
	add := func(d document.Document) {
		for name, b := range d.Files() {
			files[name] = delivery.File{Data: b, Mode: 0o644, UID: -1, GID: -1}
		}
	}
	add(s.Document)
	if s.Policy != nil {
		add(*s.Policy)
	}
	return files
}

// readSet reads the documents in a directory. For a document that equals the one in old, it reuses
// the decoded form from old.
func readSet(dir string, old Set) (Set, error) {
	manifest, err := document.Reread(old.Document, dir, document.DocManifest)
	if err != nil {
		return Set{}, err
	}
	if old.Policy == nil {
		old.Policy = new(document.Document)
	}
	policy, err := document.Reread(*old.Policy, dir, document.DocPolicy)
	if errors.Is(err, fs.ErrNotExist) {
		return newSet(manifest, nil)
	}
	if err != nil {
		return Set{}, err
	}
	return newSet(manifest, &policy)
}

// newSet returns the set of the given documents, after checking that they fit together.
func newSet(manifest document.Document, policy *document.Document) (Set, error) {
	m := manifest.Manifest()
	roots, err := trust.NewRoots(m.TrustDomain, m.Trust.Roots)
	if err != nil {
		return Set{}, fmt.Errorf("manifest of %s: %w", m.Host, err)
	}
	for _, k := range m.Trust.SigningKeys {
		if _, err := signature.ParsePublicKey(k); err != nil {
			return Set{}, fmt.Errorf("manifest of %s: trust key %q: %w", m.Host, k, err)
		}
	}
	if policy != nil && (policy.Envelope.Host != m.Host || policy.Envelope.Cluster != m.Cluster) {
		return Set{}, fmt.Errorf("policy is for %s/%s, manifest for %s/%s", policy.Envelope.Cluster, policy.Envelope.Host, m.Cluster, m.Host)
	}
	return Set{Document: manifest, Manifest: m, Roots: roots, Policy: policy}, nil
}

// Withheld returns the oldest document of the set that is older than the revocation list allows at
// the time now. It returns nil if there is none, or if the host does not fetch documents from the
// network.
func (s Set) Withheld(now time.Time) *trust.Withheld {
	if s.Manifest.Documents() == nil {
		return nil
	}
	return s.Roots.Revocations().Withheld(s.envelopes(), now)
}

// envelopes returns the envelopes of the documents in a set.
func (s Set) envelopes() []document.Envelope {
	all := []document.Envelope{s.Document.Envelope}
	if s.Policy != nil {
		all = append(all, s.Policy.Envelope)
	}
	return all
}

// Tag returns the entity tag of a set. A host sends the tag with its requests, and the provider
// returns no documents if its newest ones have the same tag.
func (s Set) Tag() string {
	raw, _, _ := s.Document.Bytes()
	envelopes := [][]byte{raw}
	if s.Policy != nil {
		raw, _, _ = s.Policy.Bytes()
		envelopes = append(envelopes, raw)
	}
	return hostapi.Tag(envelopes...)
}

// digest returns a digest over the whole content of a closure, including the envelopes of its
// documents.
func (s Set) digest() string {
	raw, _, _ := s.Document.Bytes()
	all := append([]byte{}, raw...)
	if s.Policy != nil {
		raw, _, _ = s.Policy.Bytes()
		all = append(append(all, '\n'), raw...)
	}
	return document.Digest(all)
}
