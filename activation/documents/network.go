package documents

import (
	"errors"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/api"
)

// Codes of documents from the network that are refused.
const (
	CodeOlder    = "older-document"   // transient: the provider does not have the newest yet
	CodeTampered = "tampered"         // denied: digest or signature does not verify
	CodeForeign  = "foreign-document" // denied: for another host
	CodeDisk     = "disk"             // transient: the state directory cannot be written
)

// Accept puts documents from the network in force, all of them or none; Set is what is in
// force then. A policy that is not among them stays: a provider that can withhold cannot
// remove.
func (s *Store) Accept(a api.Artifact) *api.Error {
	byKind := map[string]florete.Document{}
	for _, raw := range a.Documents {
		d, err := florete.Open([]byte(raw.Envelope), []byte(raw.Body), raw.Signature)
		var newer *florete.NewerFormatError
		if errors.As(err, &newer) {
			return api.Errorf(api.Transient, api.CodeNewerFormat, "document from the network: %v", err)
		}
		if err != nil {
			return api.Errorf(api.Denied, CodeTampered, "document from the network: %v", err)
		}
		if _, twice := byKind[d.Envelope.Kind]; twice {
			return api.Errorf(api.Denied, api.CodeMalformed, "two documents of kind %s from the network", d.Envelope.Kind)
		}
		byKind[d.Envelope.Kind] = d
	}
	manifest, ok := byKind[florete.DocManifest]
	if !ok {
		return api.Errorf(api.Transient, api.CodeMissing, "the provider has no manifest for %s yet: publish it", s.set.Manifest.Host)
	}
	set := s.set
	pins := s.set.Manifest.Trust.SigningKeys
	newer, e := s.newer(manifest, s.set.Document.Envelope, pins)
	if e != nil {
		return e
	}
	if newer {
		m, err := newSet(manifest, nil)
		if err != nil {
			return api.Errorf(api.Denied, api.CodeMalformed, "document from the network: %v", err)
		}
		m.Policy = set.Policy
		set = m
		pins = append(append([]string{}, pins...), m.Manifest.Trust.SigningKeys...)
	}
	changed := newer
	if policy, ok := byKind[florete.DocPolicy]; ok {
		var held florete.Envelope
		if set.Policy != nil {
			held = set.Policy.Envelope
		}
		newer, e := s.newer(policy, held, pins)
		if e != nil {
			return e
		}
		if newer {
			set.Policy, changed = &policy, true
		}
	}
	if err := s.commit(set, changed, byKind); err != nil {
		return api.Errorf(api.Transient, CodeDisk, "%v", err)
	}
	return nil
}

// newer reports whether a document verifies, is for this host, and is newer than minVersion.
// That version itself is accepted and changes nothing; an older one is an error.
func (s *Store) newer(d florete.Document, held florete.Envelope, pins []string) (bool, *api.Error) {
	if err := d.Verify(pins); err != nil {
		return false, api.Errorf(api.Denied, CodeTampered, "document from the network: %v: publish with a key that this host pins, or deploy its closure", err)
	}
	e, m := d.Envelope, s.set.Manifest
	if e.Host != m.Host || e.Cluster != m.Cluster {
		return false, api.Errorf(api.Denied, CodeForeign, "document from the network: %s is for %s/%s, this host is %s/%s", e.Kind, e.Cluster, e.Host, m.Cluster, m.Host)
	}
	least := s.record.minVersion(e.Kind, held)
	if e.Newer(least) {
		return true, nil
	}
	if least.Newer(e) {
		return false, api.Errorf(api.Transient, CodeOlder, "document from the network: %s has serial %d, this host has already accepted serial %d: publish a newer one, or go back by deploying the closure", e.Kind, e.Serial, least.Serial)
	}
	return false, nil
}

// commit puts a set in force when it changed, and records what the network had.
func (s *Store) commit(set Set, changed bool, from map[string]florete.Document) error {
	if changed {
		if err := s.put(set); err != nil {
			return err
		}
	}
	save := false
	for _, d := range from {
		save = s.record.noteFromNetwork(d.Envelope) || save
	}
	if !save {
		return nil
	}
	return s.record.save(s.layout.State())
}
