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

// record is Layout.State: what was seen of each origin.
type record struct {
	Closure string             `json:"closure"` // digest of the envelopes last taken from it
	Network map[string]version `json:"network"` // by kind, the newest received from it; behind undone, that a host went back from
}

// undone begins the keys of what was gone back from, which the network need not have had.
const undone = "undone/"

// version orders the documents of one kind.
type version struct {
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`
}

// loadRecord reads the record. Without one the closure, which is trusted, wins; one that cannot
// be read is made anew of what is in force, where that is newer.
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

// begin makes the record of a closure and what is held after it.
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

// minVersion is what a document of a kind from the network must be newer than.
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

// noteRollback records what of held is newer than next, which replaces it, so that the
// network cannot undo that; true where there is any.
func (r *record) noteRollback(held, next Set) bool {
	noted := held.Document.Envelope.Newer(next.Document.Envelope) && r.noteUndone(held.Document.Envelope)
	if held.Policy != nil && next.Policy != nil && held.Policy.Envelope.Newer(next.Policy.Envelope) {
		noted = r.noteUndone(held.Policy.Envelope) || noted
	}
	return noted
}

// noteFromNetwork records a document from the network; true where it is the newest so far.
func (r *record) noteFromNetwork(e document.Envelope) bool { return r.note(e.Kind, e) }

// noteUndone records a document that is gone back from, likewise.
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

// noteClosure records why the closure is not in force: newer is nil where that is no matter
// of its format.
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
