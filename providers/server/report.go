package server

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/store"
)

// ReportPrefix starts the keys of what nodes reported last; the node's name follows.
const ReportPrefix = "report/"

// report answers a node that reports of itself.
func (s *Server) report(w http.ResponseWriter, r *http.Request, k Receiver) {
	a := s.Request(r)
	err := a.IdentifyNode(r)
	var report []byte
	if err == nil {
		if report, err = io.ReadAll(http.MaxBytesReader(w, r.Body, hostapi.MaxReport)); err != nil {
			err = hostapi.Errorf(hostapi.CodeMalformed, "report: %v: want at most %d bytes, sent without delay", err, hostapi.MaxReport)
		}
	}
	a.Reply(w, r, err, func() (any, Change, error) { return a.keepReport(r.Context(), k, report) })
}

// keepReport decides on a report, which replaces the last one of the same node.
func (a *Request) keepReport(ctx context.Context, k Receiver, report []byte) (any, Change, error) {
	none := Change{Unrecorded: true}
	call, err := a.Granted()
	if err != nil {
		return nil, none, err
	}
	at := ReportPrefix + a.Caller.Name()
	last, err := a.Store.Get(ctx, at)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, none, err
	}
	is, err := k.Receive(call, last.Value, report)
	if err != nil || is.Keep == nil {
		return is.Answer, none, err
	}
	c := Change{If: []store.Cond{{Key: at, Modified: last.Modified}}, Then: []store.Op{store.Put(at, is.Keep)}, Unrecorded: true}
	for _, act := range is.Acts {
		row := a.Row
		row.Outcome, row.Code, row.Message, row.Detail = Changed, act.Code, act.Message, act.Detail
		c.Then = append(c.Then, row.Op())
	}
	return is.Answer, c, nil
}
