package server

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strconv"

	"github.com/florete/florete/internal/hostapi"
)

// checkpoint answers a node that requests a checkpoint of the audit log in order to witness it. It
// writes no audit row, because witnessing would then make the log grow.
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	a := s.Request(r)
	err := a.IdentifyNode(r)
	text := r.URL.Query().Get("from")
	from, unreadable := strconv.ParseUint(text, 10, 64)
	if err == nil && unreadable != nil {
		err = hostapi.Errorf(hostapi.CodeMalformed, "from %.40q: want the size of a log, 0 for none", text)
	}
	a.Reply(w, r, err, func() (any, Change, error) {
		if err := a.verifyDevice(s.Policies.now.Load()); err != nil {
			return nil, Change{}, err
		}
		c, err := s.checkpointFrom(r.Context(), from)
		return c, Change{Unrecorded: true}, err
	})
}

func (s *Server) checkpointFrom(ctx context.Context, from uint64) (c hostapi.Checkpoint, err error) {
	key, newest, err := s.Log.Checkpoint(ctx)
	if errors.Is(err, fs.ErrNotExist) {
		return c, hostapi.Errorf(hostapi.CodeUnavailable, "the audit log has no checkpoint yet")
	}
	if err != nil {
		return c, err
	}
	proof, err := s.Log.Consistency(ctx, from, newest.Size)
	return hostapi.Checkpoint{Key: key, Checkpoint: newest.Text, Proof: proof, Fault: s.Log.Fault()}, err
}
