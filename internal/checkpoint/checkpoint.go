// Package checkpoint is what a provider and a host know of an audit log: its size and root at
// one time, signed with the log's own key (c2sp.org/tlog-checkpoint). A log only grows:
//
//	newer.Extends(older, proof) == nil
//
// holds for any two of its checkpoints, with the proof that it returns. It fails where a row
// was edited, removed, or put between others.
package checkpoint

import (
	"fmt"
	"strings"

	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
)

// Checkpoint is one that its log's key signed.
type Checkpoint struct {
	Log  string // its name: "<trust domain>/<kind>/<host>"
	Size uint64 // how many rows it has
	Root []byte // hash of all of them
	Text string // signed note
}

// Open verifies a checkpoint by the key of its log.
func Open(key, text string) (Checkpoint, error) {
	v, err := note.NewVerifier(key)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint: key %.100q: %w", key, err)
	}
	c, _, _, err := log.ParseCheckpoint([]byte(text), v.Name(), v)
	if err != nil {
		return Checkpoint{}, fmt.Errorf("checkpoint of log %s: %w", v.Name(), err)
	}
	return Checkpoint{c.Origin, c.Size, c.Hash, text}, nil
}

// Extends verifies that the log of c has all that it had at an older checkpoint.
func (c Checkpoint) Extends(older Checkpoint, hashes [][]byte) error {
	if c.Size < older.Size {
		return fmt.Errorf("the audit log %s has %d rows, it had %d before", c.Log, c.Size, older.Size)
	}
	err := proof.VerifyConsistency(rfc6962.DefaultHasher, older.Size, c.Size, hashes, older.Root, c.Root)
	if err != nil {
		return fmt.Errorf("the first %d rows of the audit log %s are others than before: %s", older.Size, c.Log, firstLine(err))
	}
	return nil
}

// Includes verifies that the log has a row's leaf at an index.
func (c Checkpoint) Includes(leaf string, index uint64, hashes [][]byte) error {
	err := proof.VerifyInclusion(rfc6962.DefaultHasher, index, c.Size, rfc6962.DefaultHasher.HashLeaf([]byte(leaf)), hashes, c.Root)
	if err != nil {
		return fmt.Errorf("row %d of the audit log %s is not this one: %s", index, c.Log, firstLine(err))
	}
	return nil
}

// firstLine is an error without the hashes that follow.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
