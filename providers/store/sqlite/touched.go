package sqlite

import "encoding/binary"

// touched is the keys that a revision changed: of each the length of its name, doubled, and one
// more where it was deleted, as a varint of encoding/binary; then the name. Values are those of
// the keys themselves.
type touched []byte

func (t touched) put(key string) touched     { return t.with(key, 0) }
func (t touched) deleted(key string) touched { return t.with(key, 1) }

func (t touched) with(key string, deleted uint64) touched {
	return append(binary.AppendUvarint(t, uint64(len(key))<<1|deleted), key...)
}

// keys yields each key, and whether it was deleted.
func (t touched) keys(yield func(key string, deleted bool) bool) {
	for len(t) > 0 {
		n, used := binary.Uvarint(t)
		end := used + int(n>>1)
		if used <= 0 || end > len(t) || end < used { // written by another program
			return
		}
		if !yield(string(t[used:end]), n&1 != 0) {
			return
		}
		t = t[end:]
	}
}

// changed is a revision, and what it changed.
type changed struct {
	revision int64
	touched  touched
}
