package hostapi

import (
	"context"
	"fmt"
	"net/http"
	"strings"

	"github.com/transparency-dev/formats/log"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"
	"golang.org/x/mod/sumdb/note"
)

// PathCheckpoint returns the path from which nodes fetch the newest checkpoint of an audit log.
// Each provider process has an audit log, so the kind of need that the process answers selects the
// log. The query parameter "from" is the size of the newest checkpoint that the node has seen, or
// 0.
func PathCheckpoint(kind string) string { return "/" + kind + "/checkpoint" }

// Checkpoint is a provider's answer to a request for the newest checkpoint of its audit log.
type Checkpoint struct {
	Key        string   `json:"key"`             // verifier key of the log, in the form used by signed notes
	Checkpoint string   `json:"checkpoint"`      // signed note
	Proof      [][]byte `json:"proof,omitempty"` // proof that Checkpoint extends the checkpoint of the requested size
	Fault      string   `json:"fault,omitempty"` // difference that the provider found between its stored rows and the log, if any
}

// Checkpoint fetches the newest checkpoint of an audit log, with the proof that it extends an older
// checkpoint. The argument kind is the kind of need that the log's provider process answers. The
// argument from is the size of the older checkpoint.
func (p *Calls) Checkpoint(ctx context.Context, kind string, from uint64) (c Checkpoint, err error) {
	err = p.call(ctx, func(ctx context.Context, s *session) error {
		return s.call(ctx, http.MethodGet, fmt.Sprintf("%s?from=%d", PathCheckpoint(kind), from), s.device(), nil, &c)
	})
	return c, err
}

// VerifiedCheckpoint is a checkpoint of an audit log whose signature was verified. A checkpoint
// contains the size and the root hash of the log at one time, signed with the log's own key
// (c2sp.org/tlog-checkpoint). With two checkpoints, anyone can check that rows were only appended
// to the log in between. The log returns the proof for this check:
//
//	newer.Extends(older, proof) == nil
//
// Extends returns an error if a row was edited, removed or inserted.
type VerifiedCheckpoint struct {
	Log  string // name of the log: "<trust domain>/<kind>/<host>"
	Size uint64 // number of rows
	Root []byte // hash of all rows
	Text string // signed note
}

// OpenCheckpoint parses the text of a checkpoint, and verifies its signature with the key of the
// log.
func OpenCheckpoint(key, text string) (VerifiedCheckpoint, error) {
	v, err := note.NewVerifier(key)
	if err != nil {
		return VerifiedCheckpoint{}, fmt.Errorf("checkpoint: key %.100q: %w", key, err)
	}
	c, _, _, err := log.ParseCheckpoint([]byte(text), v.Name(), v)
	if err != nil {
		return VerifiedCheckpoint{}, fmt.Errorf("checkpoint of log %s: %w", v.Name(), err)
	}
	return VerifiedCheckpoint{c.Origin, c.Size, c.Hash, text}, nil
}

// Extends verifies that the log at checkpoint c still contains every row that it contained at the
// checkpoint older. The argument hashes is the consistency proof.
func (c VerifiedCheckpoint) Extends(older VerifiedCheckpoint, hashes [][]byte) error {
	if c.Size < older.Size {
		return fmt.Errorf("the audit log %s has %d rows, it had %d before", c.Log, c.Size, older.Size)
	}
	err := proof.VerifyConsistency(rfc6962.DefaultHasher, older.Size, c.Size, hashes, older.Root, c.Root)
	if err != nil {
		return fmt.Errorf("the first %d rows of the audit log %s are others than before: %s", older.Size, c.Log, firstLine(err))
	}
	return nil
}

// Includes verifies that the log at checkpoint c contains a row. The row is given by its leaf and
// its index. The argument hashes is the inclusion proof.
func (c VerifiedCheckpoint) Includes(leaf string, index uint64, hashes [][]byte) error {
	err := proof.VerifyInclusion(rfc6962.DefaultHasher, index, c.Size, rfc6962.DefaultHasher.HashLeaf([]byte(leaf)), hashes, c.Root)
	if err != nil {
		return fmt.Errorf("row %d of the audit log %s is not this one: %s", index, c.Log, firstLine(err))
	}
	return nil
}

// firstLine returns the first line of an error's message. It leaves out the hashes in the following
// lines.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}
