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

// Direction is where a connection comes from.
type Direction string

const (
	In  Direction = "in"  // from a peer to a published service
	Out Direction = "out" // from a process of this host
)

// Refusal is one connection that was not let through.
type Refusal struct {
	Time      time.Time `json:"time"`
	Direction Direction `json:"direction"`
	Reason    string    `json:"reason"` // one of a fixed set of words
	Target    string    `json:"target"` // what was requested
	Peer      string    `json:"peer"`   // Direction In: the caller; Direction Out: as whom
	Detail    string    `json:"detail"`
}

// Path sums up what went between one local identity and one peer.
type Path struct {
	Direction Direction  `json:"direction"`
	Target    florete.ID `json:"target"`
	Caller    florete.ID `json:"caller"`
	Live      int64      `json:"live"`     // connections now
	Total     int64      `json:"total"`    // connections ever
	Sent      int64      `json:"sent"`     // bytes from caller to target
	Received  int64      `json:"received"` // bytes from target to caller
	Dropped   int64      `json:"dropped"`  // datagrams of the local end that found a queue full
}

const (
	maxRecent = 32 // refusals that are kept in full
	// maxReasons is well over the words there are. Peers give codes, any of 2^62; what
	// is beyond is counted as "other".
	maxReasons = 64
)

// Counters counts. The zero Counters is empty and ready.
type Counters struct {
	mu      sync.Mutex
	paths   map[pathKey]*path
	reasons map[string]int64
	recent  []Refusal
}

type pathKey struct {
	direction      Direction
	target, caller florete.ID
}

type path struct{ live, total, sent, received, dropped atomic.Int64 }

// Conn is one live connection, or UDP session: add what passes, and call Done once.
type Conn struct {
	Sent, Received *atomic.Int64 // bytes from caller to target, and back
	Dropped        *atomic.Int64 // datagrams
	live           *atomic.Int64
}

// Begin counts a connection in.
func (c *Counters) Begin(direction Direction, target, caller florete.ID) Conn {
	c.mu.Lock()
	defer c.mu.Unlock()
	k := pathKey{direction, target, caller}
	p := c.paths[k]
	if p == nil {
		if c.paths == nil {
			c.paths = map[pathKey]*path{}
		}
		p = &path{}
		c.paths[k] = p
	}
	p.live.Add(1)
	p.total.Add(1)
	return Conn{Sent: &p.sent, Received: &p.received, Dropped: &p.dropped, live: &p.live}
}

// Done counts a connection out.
func (c Conn) Done() { c.live.Add(-1) }

// Refuse counts a refusal.
func (c *Counters) Refuse(r Refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reasons == nil {
		c.reasons = map[string]int64{}
	}
	reason := r.Reason
	if _, ok := c.reasons[reason]; !ok && len(c.reasons) >= maxReasons {
		reason = "other"
	}
	c.reasons[reason]++
	if len(c.recent) == maxRecent {
		c.recent = c.recent[1:]
	}
	c.recent = append(c.recent, r)
}

// Summary is all that was counted.
type Summary struct {
	Paths          []Path           `json:"paths"`          // sorted by direction, target, caller
	Refusals       map[string]int64 `json:"refusals"`       // by reason
	RecentRefusals []Refusal        `json:"recentRefusals"` // the latest refusals, oldest first
}

// Summary is what was counted until now.
func (c *Counters) Summary() Summary {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Summary{Paths: []Path{}, Refusals: map[string]int64{}, RecentRefusals: slices.Clone(c.recent)}
	if s.RecentRefusals == nil {
		s.RecentRefusals = []Refusal{}
	}
	for k, p := range c.paths {
		s.Paths = append(s.Paths, Path{
			Direction: k.direction, Target: k.target, Caller: k.caller,
			Live: p.live.Load(), Total: p.total.Load(), Sent: p.sent.Load(), Received: p.received.Load(), Dropped: p.dropped.Load(),
		})
	}
	slices.SortFunc(s.Paths, func(a, b Path) int {
		return cmp.Or(cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Target.String(), b.Target.String()), cmp.Compare(a.Caller.String(), b.Caller.String()))
	})
	for r, n := range c.reasons {
		s.Refusals[r] = n
	}
	return s
}
