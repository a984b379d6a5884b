package server

import (
	"cmp"
	"context"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/providers/store"
)

// These constants limit the audit rows about unauthenticated callers in an interval, for each
// network and for all networks together. Rows beyond the limits are counted. When the interval
// ends, the numbers are written: one row for each of some networks, and one row for all others.
const (
	sumEvery      = time.Hour
	rowsOfNetwork = 100
	rowsOfAll     = 1000
	maxNetworks   = 1024

	// rowsOfCaller is the number of refusals of a known caller that have rows of their own in an
	// interval. Others are counted: maxCallers callers separately, and all further callers
	// together.
	rowsOfCaller = 300
	maxCallers   = 1024
)

// batch is the largest number of rows that are written in one transaction.
const batch = 100

// network counts the answers to strangers from one network in an interval. It is also used to count
// the refusals of one known caller.
type network struct {
	rows   int            // written whole
	counts map[string]int // of those that were not, by code
}

// Stranger writes an audit row about a caller without a verified certificate. If there are too many
// such rows, it only counts the row, for the next call of Sum.
func (a *Audit) Stranger(ctx context.Context, r Row) error {
	for k, v := range r.Detail {
		r.Detail[k] = terminal.Text(v)
	}
	_, err := a.commit(ctx, Change{}, r, false)
	return err
}

// admit reports whether a row about a stranger is to be written. If it is not, admit counts the
// row.
func (a *Audit) admit(r Row) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	n := a.network(r.From, r.Time)
	if n.rows < rowsOfNetwork && a.rows < rowsOfAll {
		n.rows++
		a.rows++
		return true
	}
	n.counts[cmp.Or(r.CountAs, r.Code, string(r.Outcome))]++
	return false
}

// admitKnown reports whether a row about a known caller is to be written. If it is not, admitKnown
// counts the row.
func (a *Audit) admitKnown(r Row) bool {
	if !r.refusal() {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since.IsZero() {
		a.since = r.Time
	}
	caller := r.Caller
	if a.callers[caller] == nil && len(a.callers) >= maxCallers {
		caller = ""
	}
	n := a.callers[caller]
	if n == nil {
		n = &network{counts: map[string]int{}}
		a.callers[caller] = n
	}
	if n.rows < rowsOfCaller {
		n.rows++
		return true
	}
	n.counts[cmp.Or(r.Code, string(r.Outcome))]++
	return false
}

// count counts a row that is not written.
func (a *Audit) count(peer, code string, now time.Time) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.network(peer, now).counts[code]++
}

// network returns the counts of a peer's network. If there are too many networks, it returns the
// counts that all further networks share. The caller must hold a.mu.
func (a *Audit) network(peer string, now time.Time) *network {
	if a.since.IsZero() {
		a.since = now
	}
	from := conns.Prefix(peer)
	if a.networks[from] == nil && len(a.networks) >= maxNetworks {
		from = netip.Prefix{}
	}
	if a.networks[from] == nil {
		a.networks[from] = &network{counts: map[string]int{}}
	}
	return a.networks[from]
}

// run writes the sums of counted rows at the end of each interval. It also writes them when ctx
// ends.
func (a *Audit) run(ctx context.Context) {
	tick := time.NewTicker(sumEvery / 60)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			a.Sum(context.WithoutCancel(ctx), time.Now())
			return
		case now := <-tick.C:
			a.mu.Lock()
			due := !a.since.IsZero() && now.Sub(a.since) >= sumEvery
			a.mu.Unlock()
			if due {
				a.Sum(ctx, now)
			}
		}
	}
}

// Sum writes audit rows with the numbers of events that were only counted since its last call: one
// row for each network and each caller. It logs errors.
func (a *Audit) Sum(ctx context.Context, now time.Time) {
	a.mu.Lock()
	networks, callers, since := a.networks, a.callers, a.since
	a.networks, a.callers, a.since, a.rows = map[netip.Prefix]*network{}, map[string]*network{}, time.Time{}, 0
	a.mu.Unlock()
	var rows []Row
	add := func(r Row, n *network) {
		if len(n.counts) == 0 {
			return
		}
		r.Time, r.Outcome, r.Detail = now.UTC(), Summed, map[string]string{"since": since.UTC().Format(time.RFC3339)}
		for code, count := range n.counts {
			r.Detail[code] = strconv.Itoa(count)
		}
		rows = append(rows, r)
	}
	for from, n := range networks {
		if from.IsValid() {
			add(Row{From: from.String()}, n)
		} else {
			add(Row{From: "other networks"}, n)
		}
	}
	for caller, n := range callers {
		if caller != "" {
			add(Row{Caller: caller}, n)
		} else {
			add(Row{From: "other callers"}, n)
		}
	}
	slices.SortFunc(rows, func(x, y Row) int { return cmp.Or(cmp.Compare(x.From, y.From), cmp.Compare(x.Caller, y.Caller)) })
	for some := range slices.Chunk(rows, batch) {
		var txn store.Txn
		for _, r := range some {
			txn.Then = append(txn.Then, r.Op())
			r.Log(ctx, a.logger)
		}
		if _, err := a.store.Commit(ctx, txn); err != nil {
			a.logger.Error("sums of strangers' requests are in this log alone", "error", err)
		}
	}
}
