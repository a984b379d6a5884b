// Package telemetry records the traffic and the refusals of a forwarder. It provides counters for
// flor status and Prometheus, the access log, and traces.
package telemetry

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/florete/florete/internal/spiffe"
)

// Direction says whether a connection comes from another host (In) or from a process of this host
// (Out).
type Direction string

const (
	In  Direction = "in"  // from a peer to a published service
	Out Direction = "out" // from a process of this host
)

// Refusal describes a connection that was refused.
type Refusal struct {
	Time      time.Time `json:"time"`
	Direction Direction `json:"direction"`
	Reason    string    `json:"reason"`         // reason from a fixed set
	Target    string    `json:"target"`         // requested target
	Port      string    `json:"port,omitempty"` // name of the port if the target has several
	Peer      string    `json:"peer"`           // In: the caller; Out: the identity of the local process
	Detail    string    `json:"detail"`

	// Known reports whether the target and the peer are in the manifest. The number of such pairs
	// is small, so refusals are counted for each pair.
	Known bool `json:"-"`
}

// Refused is the number of refusals of one caller at one target for one reason. Target and Caller
// are empty if they are not in the manifest.
type Refused struct {
	Direction Direction `json:"direction"`
	Reason    string    `json:"reason"`
	Target    string    `json:"target"`
	Port      string    `json:"port,omitempty"`
	Caller    string    `json:"caller"`
	Count     int64     `json:"count"`
}

// Path counts the traffic from one caller to one port of a target, for the metrics of the
// forwarder.
type Path struct {
	Direction Direction `json:"direction"`
	Target    spiffe.ID `json:"target"`
	Port      string    `json:"port,omitempty"` // name of the port if the target has several
	Caller    spiffe.ID `json:"caller"`
	Live      int64     `json:"live"`     // connections that are open now
	Total     int64     `json:"total"`    // all connections so far
	Sent      int64     `json:"sent"`     // bytes from caller to target
	Received  int64     `json:"received"` // bytes from target to caller
	Dropped   int64     `json:"dropped"`  // datagrams dropped because a queue was full or a limit was exceeded
	Opens     Latency   `json:"opens"`    // times from the beginning of a connection until the upstream was connected
}

const (
	maxRecent = 32 // number of recent refusals that are kept in full
	// maxReasons is the maximum number of reasons that are counted separately. It is well above the
	// number of reasons in use, but peers can send any of 2^62 codes. Refusals for further reasons
	// are counted as "other".
	maxReasons = 64
)

// Counters counts the traffic and the refusals of a forwarder. The zero Counters is ready for use.
// Counters is safe for concurrent use.
type Counters struct {
	mu      sync.Mutex
	paths   map[pathKey]*path
	refused map[Refused]int64 // counts; Count is zero in the keys
	reasons map[string]struct{}
	recent  []Refusal
}

type pathKey struct {
	direction Direction
	target    spiffe.ID
	port      string
	caller    spiffe.ID
}

// path holds the totals of the ended connections of a Path, and the counters of its open ones.
type path struct {
	live  map[*counts]struct{}
	ended Path
	opens histogram
}

// counts holds the counters of one connection. Each connection has its own, so that connections
// share no cache line.
type counts struct{ sent, received, dropped atomic.Int64 }

// Conn contains the counters of an open connection or UDP session. The code that forwards the
// traffic adds to them, and calls Done once when the connection has ended.
type Conn struct {
	Sent, Received *atomic.Int64 // bytes from caller to target, and from target to caller
	Dropped        *atomic.Int64 // datagrams that were dropped
	of             *Counters
	path           *path
	counts         *counts
}

// Begin counts a new connection from a caller to a target, and returns the counters of the
// connection. The port is the name of the target's port, or empty if the target has only one. The
// caller must call Done on the result.
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

// Opened records how long it took from the beginning of the connection until the upstream was
// connected.
func (c Conn) Opened(d time.Duration) { c.path.opens.add(d) }

// Done records that the connection has ended.
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

// Refuse counts a refusal, and adds it to the list of the most recent ones.
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

// Summary holds the values of all counters, as flor status shows them.
type Summary struct {
	Paths          []Path           `json:"paths"`          // traffic, sorted by direction, target, port, caller
	Refusals       map[string]int64 `json:"refusals"`       // number of refusals by reason
	Refused        []Refused        `json:"refused"`        // refusals by caller and target, sorted
	RecentRefusals []Refusal        `json:"recentRefusals"` // the latest refusals, oldest first
}

// Summary returns the current values of all counters.
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
