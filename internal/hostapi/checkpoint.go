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

// PathCheckpoint returns the path at which a node gets the newest checkpoint of an audit log. The
// log belongs to the provider process that answers the given kind of need. The query parameter
// "from" is the size of the newest checkpoint that the node has seen, or 0.
func PathCheckpoint(kind string) string { return "/" + kind + "/checkpoint" }

// Checkpoint is a provider's answer to a request for the newest checkpoint of its audit log.
type Checkpoint struct {
	Key        string   `json:"key"`             // verifier key of the log, in the form used by signed notes
	Checkpoint string   `json:"checkpoint"`      // signed note
	Proof      [][]byte `json:"proof,omitempty"` // proof that Checkpoint extends the checkpoint of the requested size
	Fault      string   `json:"fault,omitempty"` // difference that the provider found between its stored rows and the log, if any
}

// Checkpoint gets the newest checkpoint of a kind's audit log. The result proves that it extends
// the checkpoint whose size is given by from.
func (p *Calls) Checkpoint(ctx context.Context, kind string, from uint64) (c Checkpoint, err error) {
	err = p.call(ctx, func(ctx context.Context, s *session) error {
		return s.call(ctx, http.MethodGet, fmt.Sprintf("%s?from=%d", PathCheckpoint(kind), from), s.device(), nil, &c)
	})
	return c, err
}

// VerifiedCheckpoint is a checkpoint of an audit log with a verified signature. A checkpoint is the
// size and root hash of the log at one time, signed with the log's own key
// (c2sp.org/tlog-checkpoint). Checkpoints prove that rows are only ever appended to the log:
//
//	newer.Extends(older, proof) == nil
//
// holds for any two checkpoints of the log, with the proof that the log returns. Extends returns an
// error if a row was edited, removed or inserted.
type VerifiedCheckpoint struct {
	Log  string // name of the log: "<trust domain>/<kind>/<host>"
	Size uint64 // number of rows
	Root []byte // hash of all rows
	Text string // signed note
}

// OpenCheckpoint parses a checkpoint and verifies its signature with the key of its log.
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

// Extends verifies that the log still contains, at checkpoint c, every row that it contained at an
// older checkpoint. The argument hashes is the consistency proof.
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

// Includes verifies that the log contains a row's leaf at an index. The inclusion proof is given as
// hashes.
func (c VerifiedCheckpoint) Includes(leaf string, index uint64, hashes [][]byte) error {
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
