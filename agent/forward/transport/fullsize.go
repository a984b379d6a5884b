package transport

import (
	"io"
	"sync/atomic"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/wire"
)

const (
	// checkSize is the number of bytes in a check. It exceeds the size of a packet, so that both
	// the check and its answer need a packet of full size.
	checkSize = 1500
	// checkPeriod is the minimum time between two checks. checkAfter is the number of bytes that
	// the connection must have transferred since the last check.
	checkPeriod = 300 * time.Millisecond
	checkAfter  = 512
	checkCost   = 2*checkSize + 512 // upper bound of the bytes that a check itself transfers
	// checkDue is the time that an answer may take in addition to the round trip.
	checkDue = time.Second
)

// checks detect whether packets of full size pass in both directions of a QUIC connection, because
// small packets may pass where large ones do not. The caller sends bytes on one stream, and the
// publishing side returns them on another. The caller cannot detect this in another way: it does
// not know which packets to it were lost.
type checks struct {
	due      chan struct{} // nil before the first check
	returned atomic.Int64  // bytes that the publishing side has returned

	// The following fields are only used by watch.
	sent  int64     // bytes of all checks sent so far
	began time.Time // time of the last check
	moved uint64    // bytes that the connection had transferred after the last check
}

// overdue returns how long the last check has been unanswered. It returns zero if the check was
// answered.
func (k *checks) overdue(now time.Time) time.Duration {
	if k.sent == k.returned.Load() {
		return 0
	}
	return now.Sub(k.began)
}

// checkMoved sends a check if the connection has transferred enough bytes since the last one.
func (l *quicLink) checkMoved(s quic.ConnectionStats, now time.Time) {
	k, moved := &l.checks, s.BytesSent+s.BytesReceived
	if k.sent == k.returned.Load() && moved > k.moved+checkAfter && now.Sub(k.began) >= checkPeriod {
		k.moved = moved + checkCost
		l.check(now)
	}
}

// check sends one check to the publishing side.
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

// receiveChecks counts the bytes that the publishing side returns for checks. If the stream carries
// wire.Leave instead, receiveChecks calls the function leave and returns.
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

// answerChecks sends the bytes of a caller's checks back to the caller, until the connection ends.
// It adds the number of bytes that it reads to the counter read.
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

// counted is a reader that counts the bytes read through it.
type counted struct {
	io.Reader
	n *atomic.Int64
}

func (c counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.n.Add(int64(n))
	return n, err
}
