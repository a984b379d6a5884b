package server

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"strconv"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/hostapi"
)

// checkpoint answers a node that witnesses the audit log. It leaves no row: the log would grow
// by being witnessed.
func (s *Server) checkpoint(w http.ResponseWriter, r *http.Request) {
	a := request{Server: s, row: Row{From: r.RemoteAddr, Kind: s.Kind.name}}
	err := a.identify(r.Context(), r.TLS, false)
	if err == nil {
		conns.Vouch(r.Context())
		a.request.Device, err = deviceProof(r.Header.Get(hostapi.HeaderDevice))
	}
	text := r.URL.Query().Get("from")
	from, unreadable := strconv.ParseUint(text, 10, 64)
	if err == nil && unreadable != nil {
		err = hostapi.Errorf(hostapi.CodeMalformed, "from %.40q: want the size of a log, 0 for none", text)
	}
	a.reply(w, r, func() (any, change, error) {
		if err == nil {
			err = a.verifyDevice(s.Policies.now.Load())
		}
		if err != nil {
			return nil, change{}, err
		}
		c, err := s.checkpointFrom(r.Context(), from)
		return c, change{unrecorded: true}, err
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
