package usage

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// Table is the connections there are, of both sides. The zero Table is empty and ready.
type Table struct {
	mu         sync.Mutex
	conns      map[*Conn]struct{}
	shed       map[spiffe.ID]time.Time // callers who lost their connections, and when
	handshakes map[Handshakes]int64    // without their Count
}

// Handshakes is how many connections between forwarders there were since the start, of one
// caller to one target: each is a handshake after which both sides were let in.
type Handshakes struct {
	Direction telemetry.Direction `json:"direction"`
	Target    spiffe.ID           `json:"target"`
	Caller    spiffe.ID           `json:"caller"`
	Transport document.Transport  `json:"transport"`
	Count     int64               `json:"count"`
}

// Conn is one connection. Whoever carries its streams counts.
type Conn struct {
	Streams atomic.Int64 // now
	Opened  atomic.Int64 // ever
	Read    atomic.Int64 // bytes of streams that left its receive buffers
	Full    atomic.Bool  // the peer let no further stream be opened
	Waiting atomic.Bool  // streams that the peer has opened are not accepted for now

	row       Row
	stats     func() Stats
	datagrams *atomic.Int64
	close     func()
	held      int64 // see estimate
	last      sample
	received  atomic.Pointer[time.Time]
}

// Received is when something came last, to a quarter of a second; zero while Shed has not
// measured it.
func (c *Conn) Received() time.Time {
	if at := c.received.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// Stats is what a connection has carried.
type Stats struct {
	Received, Packets, Sent int64
	Unread                  int64 // bytes that wait to be read; Estimated where nobody knows
}

// Estimated is how many bytes wait in a QUIC connection, which does not give the number.
const Estimated = -1

// OfQUIC is the Stats of a QUIC connection.
func OfQUIC(c *quic.Conn) func() Stats {
	return func() Stats {
		s := c.ConnectionStats()
		return Stats{Received: int64(s.BytesReceived), Packets: int64(s.PacketsReceived), Sent: int64(s.BytesSent), Unread: Estimated}
	}
}

// Row describes connections between two forwarders, of one caller to one target, in flor
// status: one over QUIC, or all of them over TCP.
type Row struct {
	Direction telemetry.Direction `json:"direction"`
	Target    spiffe.ID           `json:"target"`
	Caller    spiffe.ID           `json:"caller"`
	Transport document.Transport  `json:"transport"`
	Remote    string              `json:"remote"`  // address of the other forwarder; of a caller over TCP, without its port
	Streams   int64               `json:"streams"` // open now: TCP connections and UDP sessions
	Allowed   int64               `json:"allowed"` // how many may be open at a time
	Opened    int64               `json:"opened"`  // since the connection was made
	Full      bool                `json:"full"`    // the other forwarder let no further stream be opened, the last time one was wanted
}

// Add counts a connection in until remove is called. What row counts is ignored;
// datagrams are bytes that leave its receive buffers too. close is called to shed it.
func (t *Table) Add(row Row, stats func() Stats, datagrams *atomic.Int64, close func()) (conn *Conn, remove func()) {
	conn = &Conn{row: row, stats: stats, datagrams: datagrams, close: close}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		t.conns, t.handshakes = map[*Conn]struct{}{}, map[Handshakes]int64{}
	}
	t.conns[conn] = struct{}{}
	t.handshakes[Handshakes{Direction: row.Direction, Target: row.Target, Caller: row.Caller, Transport: row.Transport}]++
	return conn, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.conns, conn)
	}
}

// Shedding reports whether a caller has just lost its connections: what they held is not yet
// given back, and new ones would hold as much.
func (t *Table) Shedding(caller spiffe.ID) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	at, ok := t.shed[caller]
	if ok && time.Since(at) > penalty {
		delete(t.shed, caller)
		return false
	}
	return ok
}

// Rows are the connections, sorted.
func (t *Table) Rows() []Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := make([]Row, 0, len(t.conns))
	at := map[Row]int{} // of those over TCP
	for c := range t.conns {
		i, known := at[c.row]
		if !known {
			i = len(rows)
			rows = append(rows, c.row)
		}
		if c.row.Transport == document.OverTCP {
			at[c.row] = i
		}
		rows[i].Streams += c.Streams.Load()
		rows[i].Opened += c.Opened.Load()
		rows[i].Full = rows[i].Full || c.Full.Load()
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Target.String(), b.Target.String()),
			cmp.Compare(a.Caller.String(), b.Caller.String()), cmp.Compare(a.Remote, b.Remote))
	})
	return rows
}

// Handshakes are the connections there were, sorted.
func (t *Table) Handshakes() []Handshakes {
	t.mu.Lock()
	defer t.mu.Unlock()
	all := make([]Handshakes, 0, len(t.handshakes))
	for h, n := range t.handshakes {
		h.Count = n
		all = append(all, h)
	}
	slices.SortFunc(all, func(a, b Handshakes) int {
		return cmp.Or(cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Target.String(), b.Target.String()),
			cmp.Compare(a.Caller.String(), b.Caller.String()), cmp.Compare(a.Transport, b.Transport))
	})
	return all
}
