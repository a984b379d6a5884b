package server

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/store"
)

// Number is an optional setting of at least 1. The zero value means that it is not set.
type Number int

// UnmarshalJSON decodes a number. It rejects a number below 1.
func (n *Number) UnmarshalJSON(b []byte) error {
	var v int
	if err := json.Unmarshal(b, &v); err != nil {
		return err
	}
	if v < 1 {
		return fmt.Errorf("%d, want at least 1", v)
	}
	*n = Number(v)
	return nil
}

// Or returns n, or the argument if n is not set.
func (n Number) Or(unwritten int) int {
	if n == 0 {
		return unwritten
	}
	return int(n)
}

// Retention contains the numbers of days for which a provider keeps old records, such as audit
// rows.
type Retention struct {
	Audit   Number `json:"audit"`   // days for rows of the audit log; 365 unless set
	Answers Number `json:"answers"` // days for recorded answers and reports that no policy grants any more; 30 unless set
}

// Rows returns the earliest time from which audit rows are kept.
func (r Retention) Rows(now time.Time) time.Time { return now.AddDate(0, 0, -r.Audit.Or(365)) }

// ReportPrefix is the beginning of the keys under which the last report of each node is stored. The
// name of the node follows it.
const ReportPrefix = "report/"

// sweepEvery is the interval at which a Server removes records that are older than their retention.
const sweepEvery = time.Hour

// retain calls sweep at regular intervals until ctx ends.
func (s *Server) retain(ctx context.Context) {
	sweep := func(ctx context.Context) error { return s.sweep(ctx, time.Now()) }
	journal.Every(ctx, sweepEvery, s.Logger, sweep, "what is kept for too long stays until the next try")
}

// sweep removes records that are older than their retention, one page in each transaction. Records
// that change meanwhile are left to the next sweep.
func (s *Server) sweep(ctx context.Context, now time.Time) error {
	ago := func(days int) time.Time { return now.AddDate(0, 0, -days) }
	rows := 0
	archive := func([]store.Entry) error { return nil }
	if s.Log != nil {
		archive = s.Log.Archive
	}
	err := s.each(ctx, AuditPrefix, auditKey(s.Retention.Rows(now)), archive, func(e store.Entry) []store.Op {
		if s.Log != nil && e.Created > s.Log.Appended() {
			return nil // before the log has them they stay
		}
		rows++
		return []store.Op{store.Delete(e.Key)}
	})
	if rows > 0 {
		s.Logger.Info("rows of the audit log are over, and archived where there is a tamper-evident log", "rows", rows)
	}
	if err != nil {
		return err
	}
	over := ago(s.Retention.Answers.Or(30))
	granted, nodes := map[string]bool{}, map[string]bool{}
	for at := range s.Policies.now.Load().grants {
		granted[place(at.caller, at.need)], nodes[ReportPrefix+at.caller.Name()] = true, true
	}
	none := func([]store.Entry) error { return nil }
	err = s.each(ctx, answersPrefix, "", none, func(e store.Entry) []store.Op { return expire(e, granted[e.Key], now, over) })
	if err != nil {
		return err
	}
	return s.each(ctx, ReportPrefix, "", none, func(e store.Entry) []store.Op {
		var r hostreport.Kept
		if json.Unmarshal(e.Value, &r) != nil || nodes[e.Key] || !r.Received.Before(over) {
			return nil
		}
		return []store.Op{store.Delete(e.Key)}
	})
}

// expire returns the operation that is due for a recorded answer. If no policy grants the answer
// any more, the operation notes since when. If this time is before the time over, the operation
// removes the answer. An answer that cannot be read stays, so that the next request for it reports
// the error.
func expire(e store.Entry, granted bool, now, over time.Time) []store.Op {
	var r record
	if json.Unmarshal(e.Value, &r) != nil {
		return nil
	}
	since := r.Ungranted
	switch {
	case granted:
		r.Ungranted = 0
	case since == 0:
		r.Ungranted = now.Unix()
	case since < over.Unix():
		return []store.Op{store.Delete(e.Key)}
	}
	if r.Ungranted == since {
		return nil
	}
	v := strictjson.Encode(r)
	return []store.Op{store.Put(e.Key, v)}
}

// each goes through the entries below a prefix, page by page, and changes some of them. The
// function change returns the operations for an entry. Before each commit, the function first is
// called with the entries that change. If the argument before is not empty, only entries before
// that key are included.
func (s *Server) each(ctx context.Context, prefix, before string, first func([]store.Entry) error, change func(store.Entry) []store.Op) error {
	for after := ""; ; {
		entries, err := s.Store.Page(ctx, prefix, after, store.MaxOps)
		if err != nil {
			return err
		}
		var txn store.Txn
		var changed []store.Entry
		for _, e := range entries {
			after = e.Key
			if before != "" && e.Key >= before {
				break
			}
			for _, op := range change(e) {
				changed = append(changed, e)
				txn.If = append(txn.If, store.Cond{Key: e.Key, Modified: e.Modified})
				txn.Then = append(txn.Then, op)
			}
		}
		if len(txn.Then) > 0 {
			if err := first(changed); err != nil {
				return err
			}
			if _, err := s.Store.Commit(ctx, txn); err != nil && !errors.Is(err, store.ErrConflict) {
				return err
			}
		}
		if len(entries) < store.MaxOps || before != "" && after >= before {
			return nil
		}
	}
}
