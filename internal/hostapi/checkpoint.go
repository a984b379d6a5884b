package hostapi

import (
	"context"
	"fmt"
	"net/http"
)

// PathCheckpoint returns the path at which a node gets the newest checkpoint of the audit log of a
// kind's process. The query parameter from is the size of the newest checkpoint that it has seen,
// or 0.
func PathCheckpoint(kind string) string { return "/" + kind + "/checkpoint" }

// Checkpoint is the newest checkpoint of an audit log.
type Checkpoint struct {
	Key        string   `json:"key"`             // verifier key of the log, in the form used by signed notes
	Checkpoint string   `json:"checkpoint"`      // signed note
	Proof      [][]byte `json:"proof,omitempty"` // proves that it extends the checkpoint of the requested size
	Fault      string   `json:"fault,omitempty"` // difference that the provider found between its rows and the log, if any
}

// Checkpoint gets the newest checkpoint of a kind's audit log, with the proof that it extends the
// one of size from.
func (p *Calls) Checkpoint(ctx context.Context, kind string, from uint64) (c Checkpoint, err error) {
	err = p.call(ctx, func(ctx context.Context, s *session) error {
		return s.call(ctx, http.MethodGet, fmt.Sprintf("%s?from=%d", PathCheckpoint(kind), from), s.device(), nil, &c)
	})
	return c, err
}
