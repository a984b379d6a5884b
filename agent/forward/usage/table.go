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

// Table contains the open connections between this forwarder and others, in both directions, with
// their counters. flor status shows it, and Shed closes connections in it. The zero Table is ready
// for use. A Table is safe for concurrent use.
type Table struct {
	mu         sync.Mutex
	conns      map[*Conn]struct{}
	shed       map[spiffe.ID]time.Time // callers that lost their connections, and when
	handshakes map[Handshakes]int64    // counts; Count is zero in the keys
}

// Handshakes counts the connections that one caller has made to one target since the forwarder
// started. A connection counts if its handshake has succeeded on both sides.
type Handshakes struct {
	Direction telemetry.Direction `json:"direction"`
	Target    spiffe.ID           `json:"target"`
	Caller    spiffe.ID           `json:"caller"`
	Transport document.Transport  `json:"transport"`
	Count     int64               `json:"count"`
}

// Conn contains the counters of a connection. The code that carries its streams updates them.
type Conn struct {
	Streams atomic.Int64 // open streams
	Opened  atomic.Int64 // streams opened so far
	Read    atomic.Int64 // bytes of streams read from the receive buffers
	Full    atomic.Bool  // the peer's limit of open streams was reached
	Waiting atomic.Bool  // streams opened by the peer are not accepted at the moment

	row       Row
	stats     func() Stats
	datagrams *atomic.Int64
	close     func()
	held      int64 // unread bytes, see estimate
	last      sample
	received  atomic.Pointer[time.Time]
}

// Received returns the time at which the connection last received a packet, to within a quarter of
// a second. It returns the zero time before Shed has measured the connection for the first time.
func (c *Conn) Received() time.Time {
	if at := c.received.Load(); at != nil {
		return *at
	}
	return time.Time{}
}

// Stats holds the total bytes and packets of a connection.
type Stats struct {
	Received, Packets, Sent int64
	Unread                  int64 // unread bytes; Estimated if not known
}

// Estimated is the value of Stats.Unread for connections over QUIC, which does not report the
// number of unread bytes.
const Estimated = -1

// OfQUIC returns a function, for Table.Add, that returns the present totals of a QUIC connection.
func OfQUIC(c *quic.Conn) func() Stats {
	return func() Stats {
		s := c.ConnectionStats()
		return Stats{Received: int64(s.BytesReceived), Packets: int64(s.PacketsReceived), Sent: int64(s.BytesSent), Unread: Estimated}
	}
}

// Row is a row in the table of connections that flor status shows. It describes how one caller
// reaches one target between two forwarders. Over QUIC, it stands for one connection, and over TCP
// for all connections between the two.
type Row struct {
	Direction telemetry.Direction `json:"direction"`
	Target    spiffe.ID           `json:"target"`
	Caller    spiffe.ID           `json:"caller"`
	Transport document.Transport  `json:"transport"`
	Remote    string              `json:"remote"`  // address of the other forwarder; without the port for a caller over TCP
	Streams   int64               `json:"streams"` // open now: TCP connections and UDP sessions
	Allowed   int64               `json:"allowed"` // maximum number of open streams
	Opened    int64               `json:"opened"`  // streams opened since the connection was made
	Full      bool                `json:"full"`    // whether the other forwarder's limit of open streams was reached at the last attempt
}

// Add adds a connection to the table, until remove is called, and returns the counters of the
// connection. The parameters are:
//
//   - row describes the connection. Its counters are ignored.
//   - stats returns the present totals of the connection.
//   - datagrams counts the bytes of datagrams that were read from the connection.
//   - close is called to close the connection when memory is short.
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

// Shedding reports whether a caller has just lost its connections because memory was short. It must
// not get new ones yet, because the memory of the old ones is not free and new ones would use as
// much.
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

// Rows returns the rows of all open connections, sorted.
func (t *Table) Rows() []Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := make([]Row, 0, len(t.conns))
	at := map[Row]int{} // index in rows of each row over TCP
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

// Handshakes returns the number of connections for each caller and target, sorted.
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
