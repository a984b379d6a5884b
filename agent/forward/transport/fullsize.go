package transport

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

const (
	// checkSize exceeds the size of a packet, so that a part of a check and of its answer is in a
	// packet of full size.
	checkSize = 1500
	// checkPeriod is the minimum time between two checks, and checkAfter the number of bytes that
	// must have been transferred since the last one.
	checkPeriod = 300 * time.Millisecond
	checkAfter  = 512
	checkCost   = 2*checkSize + 512 // bytes that a check itself transfers
	// checkDue is the time that an answer may take in addition to the round trip.
	checkDue = time.Second
)

// checks detect whether packets of full size pass in both directions of a QUIC connection: the
// caller sends bytes on a stream, and the publishing side returns them on another. The caller has
// no other way to notice, because it does not know which packets to it were lost, and small packets
// may pass where large ones do not.
type checks struct {
	due      chan struct{} // nil before the first check
	returned atomic.Int64  // bytes returned

	// The following fields are only used by watch.
	sent  int64     // bytes sent
	began time.Time // beginning of the last check
	moved uint64    // bytes transferred over the connection up to the last check
}

// overdue returns the time for which a check has been unanswered, zero if there is none.
func (k *checks) overdue(now time.Time) time.Duration {
	if k.sent == k.returned.Load() {
		return 0
	}
	return now.Sub(k.began)
}

// checkMoved begins a check if enough bytes were transferred since the last one.
func (l *quicLink) checkMoved(s quic.ConnectionStats, now time.Time) {
	k, moved := &l.checks, s.BytesSent+s.BytesReceived
	if k.sent == k.returned.Load() && moved > k.moved+checkAfter && now.Sub(k.began) >= checkPeriod {
		k.moved = moved + checkCost
		l.check(now)
	}
}

// check sends the bytes of a check.
func (l *quicLink) check(now time.Time) {
	k := &l.checks
	if k.due == nil {
		out, err := l.OpenUniStream()
		if err != nil {
			return // the peer does not support checks
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

// receiveChecks receives returned checks. It calls leave if the stream is used for wire.Leave
// instead.
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

// answerChecks returns the bytes of a caller's checks, and adds them to read.
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

// counted counts the bytes read.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}
