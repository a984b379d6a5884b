// Package checkpoint verifies checkpoints of audit logs. A checkpoint is the size and root hash of
// a log at one time, signed with the log's own key (c2sp.org/tlog-checkpoint). A log is
// append-only:
//
//	newer.Extends(older, proof) == nil
//
// holds for any two of its checkpoints, with the proof that the log returns. It fails if a row was
// edited, removed or inserted.
package checkpoint

import (
	"fmt"
	"strings"

	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
)

// Checkpoint is a verified checkpoint of a log.
type Checkpoint struct {
	Log  string // name of the log: "<trust domain>/<kind>/<host>"
	Size uint64 // number of rows
	Root []byte // hash of all rows
	Text string // signed note
}

// Open parses a checkpoint and verifies its signature with the key of its log.
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

// Extends verifies that the log of c still contains every row that it had at an older checkpoint.
// The consistency proof is given as hashes.
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

// Includes verifies that the log contains a row's leaf at an index.
func (c Checkpoint) Includes(leaf string, index uint64, hashes [][]byte) error {
	err := proof.VerifyInclusion(rfc6962.DefaultHasher, index, c.Size, rfc6962.DefaultHasher.HashLeaf([]byte(leaf)), hashes, c.Root)
	if err != nil {
		return fmt.Errorf("row %d of the audit log %s is not this one: %s", index, c.Log, firstLine(err))
	}
	return nil
}

// firstLine returns the first line of an error, without the hashes that follow it.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
