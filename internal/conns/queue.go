package conns

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A connection keeps its turn for twice as long as verified callers have had theirs of late:
// one whose peer is slow holds up no others, and where all are slow, as hosts are that have no
// processor to themselves, no more are under way for that.
const (
	shortTurn = 500 * time.Millisecond
	longTurn  = 5 * time.Second
)

// Rest bounds the time that a peer may take for a handshake whose turn it is. Peers without a processor
// to themselves take seconds, and a handshake that is cut off is made again: room for others is
// made where it is needed, not by this limit.
const Rest = 30 * time.Second

// longestPlace bounds the time after which a peer that is turned away is told to come back.
const longestPlace = time.Minute

// ErrGone is the error of Begin for a connection that made room for another, or whose peer
// closed it.
var ErrGone = errors.New("connection is closed")

// FullError is the error of Begin for a connection that was turned away, and closed.
type FullError struct {
	After time.Duration // until there is a place for it
}

func (e *FullError) Error() string {
	return "turned away: too many connections wait for their handshakes"
}

// queue is of the connections that wait for a turn. A Listener's lock guards it, but for turns.
type queue struct {
	turns chan struct{} // one for each connection whose turn it is
	wait  time.Duration // Limit.Wait

	pace     time.Duration // of the turns of verified callers, the newest a sixteenth of it
	waiting  int
	interval time.Duration // between the beginnings of two turns while others wait
	since    time.Time     // of the next measurement
	begun    int           // turns in it
	began    time.Time     // the last turn
	given    time.Time     // the last place that a connection which was turned away has been given
}

// firstInterval is the interval between two turns before any was measured, of one processor. Turns end many
// at a time, so it is measured over measureFor at least. A measurement is believed at once where turns
// pass more quickly, and up to slower times the former interval otherwise: the first turns of many that
// come at once are slow, and a peer for whom the queue was too long has left before its turn, which
// costs nothing.
const (
	firstInterval = 5 * time.Millisecond
	measureFor    = time.Second
	slower        = 1.25
)

func newQueue(limit Limit) queue {
	return queue{turns: make(chan struct{}, limit.Turns), wait: limit.Wait, interval: firstInterval}
}

// Begin notes that the peer of a connection of a Listener has sent what begins a handshake:
// from then on silent peers, however many, take no room of it. Where there are turns it
// returns when it is this connection's, and gives the peer Rest for the handshake.
//
// Where more connections wait than have their turns within Limit.Wait, it answers in plain HTTP,
// which a peer that began TLS can tell from a handshake: status 503, with a Retry-After at which
// there is a place for it. Places are given out in the order of arrival, at the pace at which turns
// pass. The error is then a FullError; it is ErrGone where the connection is closed.
func Begin(c net.Conn) error {
	found := find(c)
	if found == nil || !found.of.move(found, &found.of.hall, &found.of.begun) {
		return ErrGone
	}
	if cap(found.of.queue.turns) == 0 {
		return nil
	}
	if err := found.takeTurn(); err != nil {
		found.Close()
		return err
	}
	return found.SetDeadline(time.Now().Add(Rest))
}

// takeTurn waits for a turn, unless too many do.
func (c *conn) takeTurn() error {
	l := c.of
	l.mu.Lock()
	came := time.Now()
	if after, full := l.queue.full(came); full {
		l.mu.Unlock()
		c.turnAway(after)
		return &FullError{After: after}
	}
	l.queue.waiting++
	l.mu.Unlock()
	l.queue.turns <- struct{}{}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue.waiting--
	if c.in == nil || isClosed(c.Conn) { // nothing is computed for it
		<-l.queue.turns
		return ErrGone
	}
	c.began = time.Now()
	l.queue.note(came, c.began)
	c.turn = time.AfterFunc(min(max(2*l.queue.pace, shortTurn), longTurn), c.loseTurn)
	return nil
}

// note notes the beginning of a turn, of a connection that began to wait at some time.
func (q *queue) note(came, now time.Time) {
	if waited := came.Before(q.began); !waited { // turns were free meanwhile
		q.interval, q.since, q.begun = firstInterval, now, 0
	} else if q.begun++; now.Sub(q.since) >= measureFor {
		q.interval = min(now.Sub(q.since)/time.Duration(q.begun), time.Duration(float64(q.interval)*slower))
		q.since, q.begun = now, 0
	}
	q.began = now
}

// full reports whether a connection that comes now is to be turned away, and until when.
func (q *queue) full(now time.Time) (after time.Duration, full bool) {
	expected := time.Duration(q.waiting) * q.interval
	if q.wait == 0 || expected <= q.wait {
		return 0, false
	}
	// A peer that comes early costs a connection without a handshake; where all come late, there is nothing
	// to do meanwhile. The first turns of many that come at once are slow, so places are for turns
	// twice as quick.
	if first := now.Add(expected - q.wait/2); q.given.Before(first) {
		q.given = first
	}
	q.given = q.given.Add(q.interval / 2)
	if last := now.Add(longestPlace); q.given.After(last) {
		q.given = last
		return longestPlace/2 + rand.N(longestPlace/2), true
	}
	return q.given.Sub(now), true
}

// turnAway tells a peer when to come back. What it sent so far was read, so it receives this.
func (c *conn) turnAway(after time.Duration) {
	if c.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		seconds := int((after + time.Second - 1) / time.Second)
		fmt.Fprintf(c.Conn, "HTTP/1.1 503 Service Unavailable\r\nRetry-After: %d\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", seconds)
	}
}

// isClosed reports whether the peer has closed a connection over which it sent nothing since what
// was read; false where that cannot be told.
func isClosed(c net.Conn) (closed bool) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	raw, err := s.SyscallConn()
	if err != nil {
		return false
	}
	err = raw.Control(func(fd uintptr) {
		n, _, err := unix.Recvfrom(int(fd), make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		closed = n == 0 && err == nil || errors.Is(err, unix.ECONNRESET)
	})
	return closed || err != nil
}

// loseTurn gives the turn to the next, once.
func (c *conn) loseTurn() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.passTurn()
}

// endTurn gives the turn to the next, if it is not lost, and notes how long it was.
func (c *conn) endTurn() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	if verified := c.in != nil && c.place == nil; verified && !c.began.IsZero() {
		c.of.queue.pace += (time.Since(c.began) - c.of.queue.pace) / 16
	}
	c.began = time.Time{}
	c.passTurn()
}

func (c *conn) passTurn() {
	if c.turn != nil {
		c.turn.Stop()
		c.turn = nil
		<-c.of.queue.turns
	}
}
