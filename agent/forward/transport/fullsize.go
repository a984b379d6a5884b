package transport

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

const (
	// checkSize is more than a packet holds: of the bytes of a check, and of the answer, some
	// are in a packet of the largest size that is sent.
	checkSize = 1500
	// checkPeriod is the shortest time between two checks, checkAfter how many bytes must have
	// moved since the one before.
	checkPeriod = 300 * time.Millisecond
	checkAfter  = 512
	checkCost   = 2*checkSize + 512 // what one moves itself
	// checkDue is how long an answer may take, besides what packets need.
	checkDue = time.Second
)

// checks find out whether packets of full size pass in both directions of a connection over
// QUIC: the caller sends bytes on a stream, and the publishing side returns them on another.
// Nothing else shows it to the caller: of packets that come, it does not know what was lost
// beside them, and the smallest pass where the largest do not.
type checks struct {
	due      chan struct{} // nil until the first
	returned atomic.Int64  // bytes

	// Of who watches.
	sent  int64     // bytes
	began time.Time // of the last one
	moved uint64    // bytes over the connection that it covers
}

// overdue reports for how long a check has been unanswered, zero where none is.
func (k *checks) overdue(now time.Time) time.Duration {
	if k.sent == k.returned.Load() {
		return 0
	}
	return now.Sub(k.began)
}

// checkMoved begins one where bytes have moved since the last one.
func (l *quicLink) checkMoved(s quic.ConnectionStats, now time.Time) {
	k, moved := &l.checks, s.BytesSent+s.BytesReceived
	if k.sent == k.returned.Load() && moved > k.moved+checkAfter && now.Sub(k.began) >= checkPeriod {
		k.moved = moved + checkCost
		l.check(now)
	}
}

// check sends the bytes of one.
func (l *quicLink) check(now time.Time) {
	k := &l.checks
	if k.due == nil {
		out, err := l.OpenUniStream()
		if err != nil {
			return // a peer that knows no checks
		}
		k.due = make(chan struct{}, 1)
		l.tasks.Go(func() { l.sendChecks(out) })
	}
	select {
	case k.due <- struct{}{}:
		k.sent += checkSize
		k.began = now
	default:
	}
}

func (l *quicLink) sendChecks(out *quic.SendStream) {
	b := make([]byte, checkSize)
	for {
		select {
		case <-l.checks.due:
			if _, err := out.Write(b); err != nil {
				return
			}
		case <-l.Context().Done():
			return
		}
	}
}

// receiveChecks receives those that are returned. leave is called where the stream is for
// wire.Leave instead.
func (l *quicLink) receiveChecks(in *quic.ReceiveStream, leave func()) {
	for b, first := make([]byte, checkSize), true; ; first = false {
		n, err := in.Read(b)
		if first && n > 0 && b[0] == wire.Leave {
			leave()
			return
		}
		l.checks.returned.Add(int64(n))
		l.mux.Read.Add(int64(n))
		if err != nil {
			return
		}
	}
}

// answerChecks returns the bytes of a caller's checks. read counts them.
func answerChecks(c *quic.Conn, read *atomic.Int64) {
	in, err := c.AcceptUniStream(c.Context())
	if err != nil {
		return
	}
	out, err := c.OpenUniStream()
	if err != nil {
		return
	}
	_, _ = io.CopyBuffer(out, counted{in, read}, make([]byte, checkSize))
}

// counted counts bytes that are read.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}
