// Package telemetry records the traffic and the refusals of a forwarder: counters for the status
// and for Prometheus, the access log, and traces.
package telemetry

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/florete/florete/internal/spiffe"
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
	Reason    string    `json:"reason"`         // one of a fixed set of words
	Target    string    `json:"target"`         // what was requested
	Port      string    `json:"port,omitempty"` // of several that the target has
	Peer      string    `json:"peer"`           // Direction In: the caller; Direction Out: as whom
	Detail    string    `json:"detail"`

	// Known: target and peer are of the manifest, so that there are not many of them, and
	// each is counted apart.
	Known bool `json:"-"`
}

// Refused is how often a caller was refused a target. Both are empty where the manifest
// does not name them.
type Refused struct {
	Direction Direction `json:"direction"`
	Reason    string    `json:"reason"`
	Target    string    `json:"target"`
	Port      string    `json:"port,omitempty"`
	Caller    string    `json:"caller"`
	Count     int64     `json:"count"`
}

// Path sums up what went between one local identity and one peer, at one port of its target.
type Path struct {
	Direction Direction `json:"direction"`
	Target    spiffe.ID `json:"target"`
	Port      string    `json:"port,omitempty"` // of several that the target has
	Caller    spiffe.ID `json:"caller"`
	Live      int64     `json:"live"`     // connections now
	Total     int64     `json:"total"`    // connections ever
	Sent      int64     `json:"sent"`     // bytes from caller to target
	Received  int64     `json:"received"` // bytes from target to caller
	Dropped   int64     `json:"dropped"`  // datagrams of the local end that found a queue full, and those that exceed a limit
	Opens     Latency   `json:"opens"`    // of those whose upstream was connected
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
	refused map[Refused]int64 // without their Count
	reasons map[string]struct{}
	recent  []Refusal
}

type pathKey struct {
	direction Direction
	target    spiffe.ID
	port      string
	caller    spiffe.ID
}

// path is what its connections have counted, and those that are live.
type path struct {
	live  map[*counts]struct{}
	ended Path
	opens histogram
}

// counts are of one connection, which shares no cache line of counters with others.
type counts struct{ sent, received, dropped atomic.Int64 }

// Conn is one live connection, or UDP session: add what passes, and call Done once.
type Conn struct {
	Sent, Received *atomic.Int64 // bytes from caller to target, and back
	Dropped        *atomic.Int64 // datagrams
	of             *Counters
	path           *path
	counts         *counts
}

// Begin counts a connection in, to a port of a target that has several, else to "".
func (c *Counters) Begin(direction Direction, target spiffe.ID, port string, caller spiffe.ID) Conn {
	one := &counts{}
	c.mu.Lock()
	defer c.mu.Unlock()
	k := pathKey{direction, target, port, caller}
	p := c.paths[k]
	if p == nil {
		if c.paths == nil {
			c.paths = map[pathKey]*path{}
		}
		p = &path{live: map[*counts]struct{}{}, ended: Path{Direction: direction, Target: target, Port: port, Caller: caller}}
		c.paths[k] = p
	}
	p.live[one] = struct{}{}
	p.ended.Total++
	return Conn{Sent: &one.sent, Received: &one.received, Dropped: &one.dropped, of: c, path: p, counts: one}
}

// Opened counts how long it was until the upstream was connected.
func (c Conn) Opened(d time.Duration) { c.path.opens.add(d) }

// Done counts a connection out.
func (c Conn) Done() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	delete(c.path.live, c.counts)
	c.path.ended.add(c.counts)
}

func (p *Path) add(c *counts) {
	p.Sent += c.sent.Load()
	p.Received += c.received.Load()
	p.Dropped += c.dropped.Load()
}

// Refuse counts a refusal.
func (c *Counters) Refuse(r Refusal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reasons == nil {
		c.reasons, c.refused = map[string]struct{}{}, map[Refused]int64{}
	}
	k := Refused{Direction: r.Direction, Reason: r.Reason}
	if _, ok := c.reasons[k.Reason]; !ok && len(c.reasons) >= maxReasons {
		k.Reason = "other"
	}
	c.reasons[k.Reason] = struct{}{}
	if r.Known {
		k.Target, k.Port, k.Caller = r.Target, r.Port, r.Peer
	}
	c.refused[k]++
	if len(c.recent) == maxRecent {
		c.recent = c.recent[1:]
	}
	c.recent = append(c.recent, r)
}

// Summary is all that was counted.
type Summary struct {
	Paths          []Path           `json:"paths"`          // sorted by direction, target, port, caller
	Refusals       map[string]int64 `json:"refusals"`       // by reason
	Refused        []Refused        `json:"refused"`        // the same apart, sorted
	RecentRefusals []Refusal        `json:"recentRefusals"` // the latest refusals, oldest first
}

// Summary is what was counted until now.
func (c *Counters) Summary() Summary {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := Summary{Paths: []Path{}, Refusals: map[string]int64{}, Refused: []Refused{}, RecentRefusals: slices.Clone(c.recent)}
	if s.RecentRefusals == nil {
		s.RecentRefusals = []Refusal{}
	}
	for _, p := range c.paths {
		sum := p.ended
		sum.Live, sum.Opens = int64(len(p.live)), p.opens.latency()
		for one := range p.live {
			sum.add(one)
		}
		s.Paths = append(s.Paths, sum)
	}
	slices.SortFunc(s.Paths, func(a, b Path) int {
		return cmp.Or(cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Target.String(), b.Target.String()), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Caller.String(), b.Caller.String()))
	})
	for k, n := range c.refused {
		s.Refusals[k.Reason] += n
		k.Count = n
		s.Refused = append(s.Refused, k)
	}
	slices.SortFunc(s.Refused, func(a, b Refused) int {
		return cmp.Or(cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Reason, b.Reason), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Caller, b.Caller))
	})
	return s
}
