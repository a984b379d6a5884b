package distribution

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Receive keeps the report with the highest sequence, whatever order they arrive in. Of the
// rest it reads nothing: a host of a newer release may report more.
func (p Provider) Receive(c server.Call, last, report []byte) (is server.Received, err error) {
	malformed := func(what any) error {
		return hostapi.Errorf(hostapi.CodeMalformed, "report of %s: %v", c.Caller.Short(), what)
	}
	var fields map[string]json.RawMessage
	if err := strictjson.Decode(report, &fields); err != nil {
		return is, malformed(err)
	}
	r := hostreport.Kept{Received: unixtime.Of(c.Now), Report: report}
	if err := json.Unmarshal(fields["sequence"], &r.Sequence); err != nil || r.Sequence <= 0 {
		return is, malformed(fmt.Sprintf("sequence %.40q: want an integer above zero", fields["sequence"]))
	}
	var kept hostreport.Kept
	if last != nil {
		if err := json.Unmarshal(last, &kept); err != nil {
			return is, err
		}
	}
	if r.Sequence <= kept.Sequence {
		return server.Received{Answer: hostapi.Reported{Sequence: kept.Sequence, Rotate: kept.Rotate}}, nil
	}
	if r.Rotate, err = ordered(kept.Rotate, r); err != nil {
		return is, malformed(err)
	}
	is.Answer, is.Acts = hostapi.Reported{Sequence: r.Sequence, Rotate: r.Rotate}, accepted(kept, r)
	is.Keep, err = json.Marshal(r)
	return is, err
}

// codeAuditAccepted is of the row of a fault of an audit log that a person on a host accepted.
const codeAuditAccepted = "audit-accepted"

// accepted are the faults of audit logs that were accepted on a host since its last report.
func accepted(last, now hostreport.Kept) (acts []server.Row) {
	was, _ := last.Decode()
	is, err := now.Decode()
	if err != nil || len(is.Accepted) > hostdir.MaxAccepted {
		return nil
	}
	for _, a := range is.Accepted {
		if slices.Contains(was.Accepted, a) {
			continue
		}
		text := func(s string) string { return terminal.Text(s[:min(len(s), 200)]) }
		acts = append(acts, server.Row{Code: codeAuditAccepted, Message: "what this host found of an audit log was accepted there: " + text(a.Fault), Detail: map[string]string{
			"provider": text(a.Provider), "kind": text(a.Kind), "by": text(a.By), "reason": text(a.Reason), "at": a.At.UTC().Format(time.RFC3339),
		}})
	}
	return acts
}

// next is an ordered rotation whose number is not known: the one after that of the next report.
const next = 0

// Order has a host request another secret for a need once it reports, whatever it reported
// before. The audit row is written with it.
func Order(ctx context.Context, s store.Store, host, need string, row server.Row) error {
	return store.Update(ctx, s, server.ReportPrefix+host, func(e store.Entry) (store.Txn, error) {
		var r hostreport.Kept
		if e.Modified != 0 {
			if err := json.Unmarshal(e.Value, &r); err != nil {
				return store.Txn{}, fmt.Errorf("%s: %w", e.Key, err)
			}
		}
		if r.Rotate == nil {
			r.Rotate = map[string]int{}
		}
		r.Rotate[need] = next
		value, err := json.Marshal(r)
		return store.Txn{Then: []store.Op{store.Put(e.Key, value), row.Op()}}, err
	})
}

// ordered are the rotations that the host has not reported yet, of needs that it has. One
// that is not the next is of a provider's state that was lost.
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
		if number, is := rotate[n.ID]; is && (number == next || number == n.Rotations+1) {
			left[n.ID] = n.Rotations + 1
		}
	}
	return left, nil
}
