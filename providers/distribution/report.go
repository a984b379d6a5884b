package distribution

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/recording"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// report receives a node's report. A report is recorded in the audit log only if a person acted on
// the node.
func (d *Distribution) report(w http.ResponseWriter, r *http.Request) {
	a := d.server.Request(r)
	err := a.IdentifyNode(r)
	var report []byte
	if err == nil {
		if report, err = io.ReadAll(http.MaxBytesReader(w, r.Body, hostapi.MaxReport)); err != nil {
			err = hostapi.Errorf(hostapi.CodeMalformed, "report: %v: want at most %d bytes, sent without delay", err, hostapi.MaxReport)
		}
	}
	a.Reply(w, r, err, func() (any, server.Change, error) { return keep(r.Context(), a, report) })
}

// keep stores a report unless a report with a higher sequence number is stored, because reports may
// arrive in any order. It does not interpret the other fields, because hosts of newer releases may
// report more.
func keep(ctx context.Context, a *server.Request, report []byte) (any, server.Change, error) {
	quiet := server.Change{Unrecorded: true}
	call, err := a.Granted()
	if err != nil {
		return nil, quiet, err
	}
	malformed := func(what any) error {
		return hostapi.Errorf(hostapi.CodeMalformed, "report of %s: %v", a.Caller.Short(), what)
	}
	var fields map[string]json.RawMessage
	if err := strictjson.Decode(report, &fields); err != nil {
		return nil, quiet, malformed(err)
	}
	r := hostreport.Kept{Received: unixtime.Of(call.Now), Report: report}
	if err := json.Unmarshal(fields["sequence"], &r.Sequence); err != nil || r.Sequence <= 0 {
		return nil, quiet, malformed(fmt.Sprintf("sequence %.40q: want an integer above zero", fields["sequence"]))
	}
	at := server.ReportPrefix + a.Caller.Name()
	var kept hostreport.Kept
	last, err := store.Load(ctx, a.Store, at, &kept)
	if err != nil {
		return nil, quiet, err
	}
	if r.Sequence <= kept.Sequence {
		return hostapi.Reported{Sequence: kept.Sequence, Rotate: kept.Rotate}, quiet, nil
	}
	if r.Rotate, err = ordered(kept.Rotate, r); err != nil {
		return nil, quiet, malformed(err)
	}
	value, err := json.Marshal(r)
	return hostapi.Reported{Sequence: r.Sequence, Rotate: r.Rotate}, server.Change{
		If: []store.Cond{{Key: at, Modified: last}}, Then: append(server.Ops(acts(a.Row, kept, r)), store.Put(at, value)), Unrecorded: true,
	}, err
}

// Audit codes of what a report tells for the first time: an audit fault that a person acknowledged on
// a host, and the recording of an SSH session there.
const (
	codeAuditAccepted   = "audit-accepted"
	codeSessionRecorded = "session-recorded"
)

// acts returns an audit row for each act that a host's last report did not contain.
func acts(row server.Row, last, now hostreport.Kept) (rows []server.Row) {
	was, _ := last.Decode()
	is, err := now.Decode()
	if err != nil || len(is.Accepted) > hostdir.MaxAccepted || len(is.Recordings) > recording.MaxReported {
		return nil
	}
	row.Outcome = server.Changed
	text := func(s string) string { return terminal.Text(s[:min(len(s), 200)]) }
	at := func(t unixtime.Time) string { return t.UTC().Format(time.RFC3339) }
	for _, a := range is.Accepted {
		if slices.Contains(was.Accepted, a) {
			continue
		}
		row.Code, row.Message = codeAuditAccepted, "what this host found of an audit log was accepted there: "+text(a.Fault)
		row.Detail = map[string]string{
			"provider": text(a.Provider), "kind": text(a.Kind), "by": text(a.By), "reason": text(a.Reason), "at": at(a.At),
		}
		rows = append(rows, row)
	}
	for _, s := range is.Recordings {
		if slices.Contains(was.Recordings, s) {
			continue
		}
		row.Code, row.Message = codeSessionRecorded, fmt.Sprintf("session of %s as %s at %s is recorded in %s, SHA-256 %s", s.Caller.Short(), text(s.Account), s.Service.Short(), text(s.File), text(s.SHA256))
		row.Detail = map[string]string{
			"file": text(s.File), "sha256": text(s.SHA256), "bytes": fmt.Sprint(s.Bytes), "begun": at(s.Begun), "ended": at(s.Ended),
		}
		if s.Cut {
			row.Message += ", but not to its end"
		}
		rows = append(rows, row)
	}
	return rows
}

// ordered returns the rotations of a host's needs that were ordered and that the host has not
// reported yet. It ignores an order whose number does not follow the host's last rotation, because
// the order comes from a provider state that was lost.
func ordered(rotate map[string]int, r hostreport.Kept) (map[string]int, error) {
	if len(rotate) == 0 {
		return nil, nil
	}
	report, err := r.Decode()
	if err != nil {
		return nil, err
	}
	left := map[string]int{}
	for _, n := range report.Needs {
		if number, is := rotate[n.ID]; is && (number == hostreport.NextRotation || number == n.Rotations+1) {
			left[n.ID] = n.Rotations + 1
		}
	}
	return left, nil
}
