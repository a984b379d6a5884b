package hostapi

import (
	"context"
	"fmt"
	"net/http"
)

// PathCheckpoint is where a node gets the newest checkpoint of the audit log of a kind's
// process, with ?from=, the size of the newest one that it has seen, 0 for none.
func PathCheckpoint(kind string) string { return "/" + kind + "/checkpoint" }

// Checkpoint is the newest one of an audit log.
type Checkpoint struct {
	Key        string   `json:"key"`             // of the log, in the form of a signed note's
	Checkpoint string   `json:"checkpoint"`      // signed note
	Proof      [][]byte `json:"proof,omitempty"` // that it extends the one of the size that was named
	Fault      string   `json:"fault,omitempty"` // how the provider finds its rows to differ from the log
}

// Checkpoint gets the newest one of a kind's audit log, since one of a size.
func (p *Calls) Checkpoint(ctx context.Context, kind string, from uint64) (c Checkpoint, err error) {
	err = p.call(ctx, func(ctx context.Context, s *session) error {
		return s.call(ctx, http.MethodGet, fmt.Sprintf("%s?from=%d", PathCheckpoint(kind), from), s.device(), nil, &c)
	})
	return c, err
}
