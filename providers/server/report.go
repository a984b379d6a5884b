package server

import (
	"context"
	"errors"
	"io"
	"net/http"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/store"
)

// ReportPrefix starts the keys of what nodes reported last; the node's name follows.
const ReportPrefix = "report/"

// report answers a node that reports of itself.
func (s *Server) report(w http.ResponseWriter, r *http.Request, k Receiver) {
	a := request{Server: s, row: Row{From: r.RemoteAddr, Kind: s.Kind.name}}
	err := a.identify(r.Context(), r.TLS, false)
	if err == nil {
		conns.Vouch(r.Context())
		a.request.Device, err = deviceProof(r.Header.Get(hostapi.HeaderDevice))
	}
	var report []byte
	if err == nil {
		if report, err = io.ReadAll(http.MaxBytesReader(w, r.Body, hostapi.MaxReport)); err != nil {
			err = hostapi.Errorf(hostapi.CodeMalformed, "report: %v: want at most %d bytes, sent without delay", err, hostapi.MaxReport)
		}
	}
	a.reply(w, r, func() (any, change, error) {
		if err != nil {
			return nil, change{}, err
		}
		return a.keepReport(r.Context(), k, report)
	})
}

// keepReport decides on a report, which replaces the last one of the same node.
func (a *request) keepReport(ctx context.Context, k Receiver, report []byte) (any, change, error) {
	none := change{unrecorded: true}
	call, err := a.reads()
	if err != nil {
		return nil, none, err
	}
	at := ReportPrefix + a.caller.Name()
	last, err := a.Store.Get(ctx, at)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return nil, none, err
	}
	is, err := k.Receive(call, last.Value, report)
	if err != nil || is.Keep == nil {
		return is.Answer, none, err
	}
	c := change{If: []store.Cond{{Key: at, Modified: last.Modified}}, Then: []store.Op{store.Put(at, is.Keep)}, unrecorded: true}
	for _, act := range is.Acts {
		row := a.row
		row.Outcome, row.Code, row.Message, row.Detail = Changed, act.Code, act.Message, act.Detail
		c.Then = append(c.Then, row.Op())
	}
	return is.Answer, c, nil
}

// reads is the call of a node for what the kind has for it, or of it.
func (a *request) reads() (Call, error) {
	f := a.Policies.now.Load()
	if err := a.verifyDevice(f); err != nil {
		return Call{}, f.policyBehind(err, a.row.Serial)
	}
	g, ok := f.reads[a.caller]
	if !ok {
		return Call{}, f.policyBehind(hostapi.Errorf(hostapi.CodeNotGranted,
			"documents of node %q: the policy grants it no need of kind %q", a.caller.Name(), a.Kind.name), a.row.Serial)
	}
	a.row.Need = g.Need
	return Call{Caller: a.caller, SVID: a.svid, Grant: g, Policy: f.Policy, Serial: f.serial, Revoked: f.roots.Revocations(), Now: a.row.Time}, nil
}
