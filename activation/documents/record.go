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

// record is the content of Layout.State: the versions seen of each origin.
type record struct {
	Closure string             `json:"closure"` // digest of the envelopes in the last closure
	Network map[string]version `json:"network"` // newest version from the network by kind; with the prefix undone, the newest version that was rolled back
}

// undone is the prefix of keys for versions that were rolled back. They may not have come from the
// network.
const undone = "undone/"

// version orders the documents of one kind.
type version struct {
	Serial int64  `json:"serial"`
	Digest string `json:"digest"`
}

// loadRecord reads the record. Without a record, the closure takes precedence, because it is
// trusted. A record that cannot be read is replaced by one made from the documents in force.
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

// begin starts a record with a closure and the documents held after it.
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

// minVersion returns the version than which a document of a kind from the network must be newer.
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

// noteRollback records the documents of held that are newer than those in next, which replace them,
// so that the network cannot restore them. It reports whether there are any.
func (r *record) noteRollback(held, next Set) bool {
	noted := held.Document.Envelope.Newer(next.Document.Envelope) && r.noteUndone(held.Document.Envelope)
	if held.Policy != nil && next.Policy != nil && held.Policy.Envelope.Newer(next.Policy.Envelope) {
		noted = r.noteUndone(held.Policy.Envelope) || noted
	}
	return noted
}

// noteFromNetwork records a document from the network. It reports whether it is the newest so far.
func (r *record) noteFromNetwork(e document.Envelope) bool { return r.note(e.Kind, e) }

// noteUndone records a document that was rolled back. It reports whether it is the newest so far.
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

// noteClosure records the reason why the closure is not in force; newer is nil if its format is not
// the reason.
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
