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

// PathCheckpoint returns the URL path from which nodes fetch the newest checkpoint of an audit log.
// The log is that of the provider process that answers the given kind of need. The query parameter
// "from" is the size of the newest checkpoint that the node has seen, or 0.
func PathCheckpoint(kind string) string { return "/" + kind + "/checkpoint" }

// Checkpoint is a provider's answer with the newest checkpoint of its audit log, which is a signed
// summary of all rows. A host uses it to check that rows are only ever appended.
type Checkpoint struct {
	Key        string   `json:"key"`             // verifier key of the log, in the form used by signed notes
	Checkpoint string   `json:"checkpoint"`      // signed note
	Proof      [][]byte `json:"proof,omitempty"` // proof that Checkpoint extends the checkpoint of the requested size
	Fault      string   `json:"fault,omitempty"` // difference that the provider found between its stored rows and the log, if any
}

// Checkpoint fetches the newest checkpoint of an audit log, with the proof that it extends an
// earlier checkpoint. The caller passes the size of that checkpoint, or 0. The log is that of the
// provider process that answers the given kind of need.
func (p *Calls) Checkpoint(ctx context.Context, kind string, from uint64) (c Checkpoint, err error) {
	err = p.call(ctx, func(ctx context.Context, s *session) error {
		return s.call(ctx, http.MethodGet, fmt.Sprintf("%s?from=%d", PathCheckpoint(kind), from), s.device(), nil, &c)
	})
	return c, err
}

// VerifiedCheckpoint is a checkpoint of an audit log whose signature was verified. A checkpoint
// contains the size and the root hash of the log at one time, signed with the key of the log
// (c2sp.org/tlog-checkpoint). With two checkpoints and a proof from the log, anyone can check that
// only new rows were appended in between:
//
//	newer.Extends(older, proof) == nil
type VerifiedCheckpoint struct {
	Log  string // name of the log: "<trust domain>/<kind>/<host>"
	Size uint64 // number of rows
	Root []byte // hash of all rows
	Text string // signed note
}

// OpenCheckpoint parses the text of a checkpoint and verifies its signature. The parameter key is
// the verifier key of the log, in the form of signed notes.
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

// Extends returns nil if the log at this checkpoint still begins with all rows that it had at the
// older checkpoint. It returns an error if a row was edited, removed or inserted. The hashes are
// the consistency proof, which the log returns.
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

// Includes returns nil if the log at this checkpoint contains the given row at the given index. The
// hashes are the inclusion proof, which the log returns.
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
