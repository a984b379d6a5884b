// Package metrics counts what a forwarder carries and what it refuses.
package metrics

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/florete/florete"
)

// Side is where a connection came from.
type Side string

const (
	In  Side = "in"  // from a peer to a published service
	Out Side = "out" // from a process of this host
)

// Refusal is one connection that was not let through.
type Refusal struct {
	Time   time.Time `json:"time"`
	Side   Side      `json:"side"`
	Reason string    `json:"reason"` // one of a fixed set of words
	Target string    `json:"target"` // what was asked for
	Peer   string    `json:"peer"`   // Side In: who asked; Side Out: as whom
	Detail string    `json:"detail"`
}

// Path sums up what went between one local identity and one peer.
type Path struct {
	Side     Side       `json:"side"`
	Target   florete.ID `json:"target"`
	Caller   florete.ID `json:"caller"`
	Live     int64      `json:"live"`     // connections now
	Total    int64      `json:"total"`    // connections ever
	Sent     int64      `json:"sent"`     // bytes from caller to target
	Received int64      `json:"received"` // bytes from target to caller
	Dropped  int64      `json:"dropped"`  // datagrams of the local end that found a queue full
}

const (
	lastKept = 32 // refusals that are kept in full
	// maxReasons is well over the words there are. Peers give codes, any of 2^62; what
	// is beyond is counted as "other".
	maxReasons = 64
)

// Tally counts. The zero Tally is empty and ready.
type Tally struct {
	mu      sync.Mutex
	paths   map[pathKey]*path
	reasons map[string]int64
	last    []Refusal
}

type pathKey struct {
	side           Side
	target, caller florete.ID
}

type path struct{ live, total, sent, received, dropped atomic.Int64 }

// Flow is one live connection, or UDP flow: add what passes, and call Done once.
type Flow struct {
	Sent, Received *atomic.Int64 // bytes from caller to target, and back
	Dropped        *atomic.Int64 // datagrams
	live           *atomic.Int64
}

// Begin counts a connection in.
func (t *Tally) Begin(side Side, target, caller florete.ID) Flow {
	t.mu.Lock()
	defer t.mu.Unlock()
	k := pathKey{side, target, caller}
	p := t.paths[k]
	if p == nil {
		if t.paths == nil {
			t.paths = map[pathKey]*path{}
		}
		p = &path{}
		t.paths[k] = p
	}
	p.live.Add(1)
	p.total.Add(1)
	return Flow{Sent: &p.sent, Received: &p.received, Dropped: &p.dropped, live: &p.live}
}

// Done counts a connection out.
func (f Flow) Done() { f.live.Add(-1) }

// Refuse counts a refusal.
func (t *Tally) Refuse(r Refusal) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.reasons == nil {
		t.reasons = map[string]int64{}
	}
	reason := r.Reason
	if _, ok := t.reasons[reason]; !ok && len(t.reasons) >= maxReasons {
		reason = "other"
	}
	t.reasons[reason]++
	if len(t.last) == lastKept {
		t.last = t.last[1:]
	}
	t.last = append(t.last, r)
}

// Summary is all that was counted.
type Summary struct {
	Paths    []Path           `json:"paths"`    // sorted by side, target, caller
	Refusals map[string]int64 `json:"refusals"` // by reason
	Last     []Refusal        `json:"last"`     // the latest refusals, oldest first
}

// Summary is what was counted until now.
func (t *Tally) Summary() Summary {
	t.mu.Lock()
	defer t.mu.Unlock()
	s := Summary{Paths: []Path{}, Refusals: map[string]int64{}, Last: slices.Clone(t.last)}
	if s.Last == nil {
		s.Last = []Refusal{}
	}
	for k, p := range t.paths {
		s.Paths = append(s.Paths, Path{
			Side: k.side, Target: k.target, Caller: k.caller,
			Live: p.live.Load(), Total: p.total.Load(), Sent: p.sent.Load(), Received: p.received.Load(), Dropped: p.dropped.Load(),
		})
	}
	slices.SortFunc(s.Paths, func(a, b Path) int {
		return cmp.Or(cmp.Compare(a.Side, b.Side), cmp.Compare(a.Target.String(), b.Target.String()), cmp.Compare(a.Caller.String(), b.Caller.String()))
	})
	for r, n := range t.reasons {
		s.Refusals[r] = n
	}
	return s
}
