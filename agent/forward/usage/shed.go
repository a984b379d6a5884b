package usage

import (
	"context"
	"math"
	"runtime/debug"
	"runtime/metrics"
	"time"

	"github.com/florete/florete/internal/spiffe"
)

const (
	// memory is the memory limit of the forwarder's process in bytes, unless GOMEMLIMIT is set.
	memory = 512 << 20
	period = 250 * time.Millisecond
	// relief is the time that closed sockets may need to free their memory. No other caller loses
	// connections because of the control group's limit within this time.
	relief = 2 * time.Second
	// penalty is the time for which a caller who lost its connections gets no new ones.
	penalty = 10 * time.Second
	// negligible is the number of bytes below which no caller loses its connections.
	negligible = 1 << 20
)

// sample holds the counters of a connection as they were at the last estimate.
type sample struct{ received, packets, sent, read int64 }

// Shed keeps the process within its memory limit until ctx ends, by closing connections when memory
// is short. Memory is short in two cases:
//
//   - Half of the limit is live memory.
//   - Three quarters of the limit of the process's control group are used, including kernel
//     buffers.
//
// Shed then closes the connections of the caller whose connections hold the most unread bytes, and
// Shedding refuses new ones for a while. If no caller holds many unread bytes but three quarters of
// the limit are live, Shed closes the connections of the caller that sent the most. The flow
// control windows of QUIC alone do not bound the memory, because a single byte in a frame of its
// own uses two hundred bytes.
func (t *Table) Shed(ctx context.Context) {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		limit = memory
		debug.SetMemoryLimit(limit)
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	var relieved time.Time
	var unused unused
	group := ownGroup()
	for shed := uint64(0); ; {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		t.estimate()
		unused.release(limit)
		// The memory of closed connections is still live until the second garbage collection after
		// their end.
		live, cycle := heap()
		short := live > limit/2 && cycle > shed+1 || group.short() && time.Since(relieved) > relief
		if short && (t.close(held) || live > limit/4*3 && t.close(received)) {
			debug.FreeOSMemory()
			_, shed = heap()
			relieved = time.Now()
		}
	}
}

// heap returns the bytes that were live at the end of the last garbage collection, and the number
// of that collection.
func heap() (live int64, cycle uint64) {
	s := []metrics.Sample{{Name: "/gc/heap/live:bytes"}, {Name: "/gc/cycles/total:gc-cycles"}}
	metrics.Read(s)
	return int64(s[0].Value.Uint64()), s[1].Value.Uint64()
}

// estimate updates, for each connection, the time of the last receipt and the number of unread
// bytes. QUIC does not report unread bytes. They are estimated as the bytes received, minus the
// bytes read, minus the overhead of headers and acknowledgements.
func (t *Table) estimate() {
	t.mu.Lock()
	defer t.mu.Unlock()
	at := time.Now()
	for c := range t.conns {
		stats := c.stats()
		now := sample{stats.Received, stats.Packets, stats.Sent, c.Read.Load() + c.datagrams.Load()}
		if c.received.Load() == nil || now.packets != c.last.packets {
			c.received.Store(&at)
		}
		read, sent := now.read-c.last.read, now.sent-c.last.sent
		overhead := read/16 + min(64*(now.packets-c.last.packets), read+sent)
		c.held = max(0, c.held+now.received-c.last.received-read-overhead)
		if stats.Unread != Estimated {
			c.held = stats.Unread
		}
		if c.Streams.Load() == 0 && !c.Waiting.Load() {
			c.held = 0
		}
		c.last = now
	}
}

func held(c *Conn) int64     { return c.held }
func received(c *Conn) int64 { return c.last.received }

// close closes the connections of one caller. The function of returns a value for a connection, and
// close selects the caller with the highest sum of these values. If this sum is negligible, close
// does nothing and returns false.
func (t *Table) close(of func(*Conn) int64) bool {
	heaviest := t.heaviest(of)
	for _, c := range heaviest {
		c.close()
	}
	return len(heaviest) > 0
}

func (t *Table) heaviest(of func(*Conn) int64) (conns []*Conn) {
	t.mu.Lock()
	defer t.mu.Unlock()
	callers := map[spiffe.ID]int64{}
	var most spiffe.ID
	for c := range t.conns {
		callers[c.row.Caller] += of(c)
		if callers[c.row.Caller] > callers[most] {
			most = c.row.Caller
		}
	}
	if callers[most] < negligible {
		return nil
	}
	if t.shed == nil {
		t.shed = map[spiffe.ID]time.Time{}
	}
	t.shed[most] = time.Now()
	for c := range t.conns {
		if c.row.Caller == most {
			conns = append(conns, c)
		}
	}
	return conns
}
