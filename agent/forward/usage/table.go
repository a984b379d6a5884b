// Package usage counts what each connection between forwarders holds, and closes the
// one that holds the most while memory is short.
package usage

import (
	"cmp"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/metrics"
)

// Table is the connections there are, of both sides. The zero Table is empty and ready.
type Table struct {
	mu    sync.Mutex
	conns map[*Conn]struct{}
}

// Conn is one connection. Whoever carries its streams counts.
type Conn struct {
	Streams atomic.Int64 // now
	Opened  atomic.Int64 // ever
	Read    atomic.Int64 // bytes of streams that left its receive buffers
	Full    atomic.Bool  // the peer let no further stream be opened

	row       Row
	quic      *quic.Conn
	datagrams *atomic.Int64
	close     func()
	held      int64 // see estimate
	last      sample
}

// Row describes a connection in flor status.
type Row struct {
	Direction metrics.Direction `json:"direction"`
	Target    florete.ID        `json:"target"`
	Caller    florete.ID        `json:"caller"`
	Remote    string            `json:"remote"`  // address of the other forwarder
	Streams   int64             `json:"streams"` // open now: TCP connections and UDP sessions
	Allowed   int64             `json:"allowed"` // how many may be open at a time
	Opened    int64             `json:"opened"`  // since the connection was made
	Full      bool              `json:"full"`    // the other forwarder let no further stream be opened, the last time one was wanted
}

// Add counts a connection in until remove is called. What row counts is ignored;
// datagrams are bytes that leave its receive buffers too. close is called to shed it.
func (t *Table) Add(row Row, c *quic.Conn, datagrams *atomic.Int64, close func()) (conn *Conn, remove func()) {
	conn = &Conn{row: row, quic: c, datagrams: datagrams, close: close}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.conns == nil {
		t.conns = map[*Conn]struct{}{}
	}
	t.conns[conn] = struct{}{}
	return conn, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.conns, conn)
	}
}

// Rows are the connections, sorted.
func (t *Table) Rows() []Row {
	t.mu.Lock()
	defer t.mu.Unlock()
	rows := make([]Row, 0, len(t.conns))
	for c := range t.conns {
		r := c.row
		r.Streams, r.Opened, r.Full = c.Streams.Load(), c.Opened.Load(), c.Full.Load()
		rows = append(rows, r)
	}
	slices.SortFunc(rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Target.String(), b.Target.String()),
			cmp.Compare(a.Caller.String(), b.Caller.String()), cmp.Compare(a.Remote, b.Remote))
	})
	return rows
}
