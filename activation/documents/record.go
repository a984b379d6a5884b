package documents

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/strictjson"
)

// record is the content of the file Layout.State. It says which versions of the documents were seen
// in the closure and from the network.
type record struct {
	Closure string             `json:"closure"` // digest of the envelopes in the last closure
	Network map[string]version `json:"network"` // newest version from the network, by kind; with the prefix undone, the newest version that was rolled back
}

// undone is the prefix of those keys in record.Network whose values are versions that were rolled
// back. These versions may have come from the closure or from the network.
const undone = "undone/"

// version identifies a version of a document. Versions of the same kind of document are ordered.
type version struct {
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`
}

// loadRecord reads the record from a file. If there is no file, it returns an empty record, so that
// the closure takes precedence. The caller replaces a record that cannot be read by one made from
// the documents in force.
func loadRecord(path string) (record, error) {
	var r record
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return r, nil
	}
	if err == nil {
		err = strictjson.Decode(b, &r)
	}
	if err != nil {
		return record{}, fmt.Errorf("%s: %w", path, err)
	}
	return r, nil
}

// begin fills in a new record, from the closure and from the documents that are in force after it
// was read.
func (r *record) begin(closure string, held Set) {
	r.Closure = closure
	r.noteFromNetwork(held.Document.Envelope)
	if held.Policy != nil {
		r.noteFromNetwork(held.Policy.Envelope)
	}
}

func (r record) save(path string) error {
	if r.Network == nil {
		r.Network = map[string]version{}
	}
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	return atomicfile.File(path, append(b, '\n'), 0o644)
}

// minVersion returns the version than which a document from the network must be newer. This is the
// newest among the version in force, given by held, the versions that the network delivered, and
// those that were rolled back.
func (r record) minVersion(kind string, held document.Envelope) document.Envelope {
	for _, key := range []string{kind, undone + kind} {
		if e := r.newest(key); e.Newer(held) {
			held = e
		}
	}
	return held
}

func (r record) newest(key string) document.Envelope {
	v := r.Network[key]
	return document.Envelope{Serial: v.Serial, Digest: v.Digest}
}

// noteRollback records that the documents in the set held are replaced by older ones in the set
// next. The network cannot put the recorded documents in force again. noteRollback reports whether
// it has recorded any.
func (r *record) noteRollback(held, next Set) bool {
	noted := held.Document.Envelope.Newer(next.Document.Envelope) && r.noteUndone(held.Document.Envelope)
	if held.Policy != nil && next.Policy != nil && held.Policy.Envelope.Newer(next.Policy.Envelope) {
		noted = r.noteUndone(held.Policy.Envelope) || noted
	}
	return noted
}

// noteFromNetwork records a version that was received from the network. It reports whether this is
// the newest one so far.
func (r *record) noteFromNetwork(e document.Envelope) bool { return r.note(e.Kind, e) }

// noteUndone records a version that was rolled back. It reports whether this is the newest one that
// was rolled back so far.
func (r *record) noteUndone(e document.Envelope) bool { return r.note(undone+e.Kind, e) }

func (r *record) note(key string, e document.Envelope) bool {
	if !e.Newer(r.newest(key)) {
		return false
	}
	if r.Network == nil {
		r.Network = map[string]version{}
	}
	r.Network[key] = version{e.Serial, e.Digest}
	return true
}

// noteClosure records that the closure has a newer format than this release supports, as described
// by newer. If newer is nil, it removes that record.
func noteClosure(l hostdir.Layout, newer *document.NewerFormatError) error {
	path := l.ClosureErrorFile()
	if newer == nil {
		if err := os.Remove(path); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return nil
	}
	b, err := json.Marshal(hostdir.NeedError{Kind: string(hostapi.Transient), Code: hostapi.CodeNewerFormat.Name, Message: "closure: " + newer.Error()})
	if err != nil {
		return err
	}
	return atomicfile.File(path, append(b, '\n'), 0o644)
}
