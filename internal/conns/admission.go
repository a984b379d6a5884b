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

// Bounds of the duration of a turn. Within them, a turn may take twice as long as recent turns of
// verified callers took. A slow peer then does not hold up the others, and the number of concurrent
// handshakes does not grow if all hosts are slow.
const (
	shortTurn = 500 * time.Millisecond
	longTurn  = 5 * time.Second
)

// Rest is the time limit of a peer's TLS handshake, counted from the beginning of its turn. It is
// generous, because a peer on a busy machine may need seconds, and would only repeat a handshake
// that was cut off. It does not need to be short, because the Listener makes room for new
// connections by closing others.
const Rest = 30 * time.Second

// longestPlace is the longest time that Retry-After contains if a connection is turned away.
const longestPlace = time.Minute

// ErrGone is the error of Begin for a connection that is already closed. The peer closed it, or the
// Listener did to make room.
var ErrGone = errors.New("connection is closed")

// FullError is the error of Begin for a connection that would have to wait too long for its turn.
// The connection is closed.
type FullError struct {
	After time.Duration // time to wait before the peer connects again
}

func (e *FullError) Error() string {
	return "turned away: too many connections wait for their handshakes"
}

// queue contains the connections that wait for their turn, in order. The lock of the Listener
// guards all fields except turns.
type queue struct {
	turns chan struct{} // contains one element for each connection that has its turn
	wait  time.Duration // Limit.Wait

	pace     time.Duration // moving average of the duration of verified callers' turns, weight 1/16
	waiting  int
	interval time.Duration // time between the beginnings of two turns while connections wait
	since    time.Time     // beginning of the current measurement
	begun    int           // number of turns in the current measurement
	began    time.Time     // beginning of the last turn
	given    time.Time     // last time that was assigned to a connection that was turned away
}

// The time between the beginnings of two turns is called the interval. Before it is measured,
// firstInterval is assumed, for a machine with one processor. A measurement takes at least
// measureFor, because many turns end at the same time. A shorter measured interval is used at once.
// A longer one is used only up to slower times the previous value, because the first turns of a
// burst are slow, and peers that leave the queue early cost nothing.
const (
	firstInterval = 5 * time.Millisecond
	measureFor    = time.Second
	slower        = 1.25
)

func newQueue(limit Limit) queue {
	return queue{turns: make(chan struct{}, limit.Turns), wait: limit.Wait, interval: firstInterval}
}

// Begin tells the Listener of the connection c that its peer has begun a TLS handshake. From then
// on, silent peers cannot take the place of this connection. If the Listener limits how many
// connections are served at a time (Limit.Turns), Begin waits until it is the turn of this one, and
// then sets a deadline of Rest for the handshake.
//
// If the connection would have to wait longer than Limit.Wait, Begin closes it and returns a
// *FullError. Before that, it sends a plain HTTP answer with status 503 and Retry-After, which a
// TLS client can tell from a handshake. The times in Retry-After are assigned in order of arrival,
// at the rate at which connections are served. If the connection is already closed, the error is
// ErrGone.
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

// takeTurn waits for the turn of the connection. If the queue is too long, it turns the connection
// away.
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
	if c.in == nil || isClosed(c.Conn) { // do not begin a handshake with a peer that is gone
		<-l.queue.turns
		return ErrGone
	}
	c.began = time.Now()
	l.queue.note(came, c.began)
	c.lasts = min(max(2*l.queue.pace, shortTurn), longTurn)
	c.turn = time.AfterFunc(c.lasts, c.loseTurn)
	return nil
}

// note records the beginning of a turn at the time now. The argument came is the time at which the
// connection began to wait for it.
func (q *queue) note(came, now time.Time) {
	if waited := came.Before(q.began); !waited { // a turn was free, so nothing was measured
		q.interval, q.since, q.begun = firstInterval, now, 0
	} else if q.begun++; now.Sub(q.since) >= measureFor {
		q.interval = min(now.Sub(q.since)/time.Duration(q.begun), time.Duration(float64(q.interval)*slower))
		q.since, q.begun = now, 0
	}
	q.began = now
}

// full reports whether a connection that arrives now must be turned away. The result after is the
// time after which the peer should connect again.
func (q *queue) full(now time.Time) (after time.Duration, full bool) {
	expected := time.Duration(q.waiting) * q.interval
	if q.wait == 0 || expected <= q.wait {
		return 0, false
	}
	// A peer that comes back too early costs a connection without a handshake. If all come back too
	// late, the server is idle meanwhile. Because the first turns of a burst are slow, the times
	// are assigned at twice the measured rate.
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

// turnAway tells the peer when to connect again, and closes the connection. It is called after all
// data from the peer was read. Otherwise the close would reset the connection, and the peer might
// not receive the answer.
func (c *conn) turnAway(after time.Duration) {
	if c.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		seconds := int((after + time.Second - 1) / time.Second)
		fmt.Fprintf(c.Conn, "HTTP/1.1 503 Service Unavailable\r\nRetry-After: %d\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", seconds)
	}
}

// isClosed reports whether the peer has closed the connection and sent no more data before. If this
// is not known, isClosed returns false.
func isClosed(c net.Conn) (closed bool) {
	s, ok := c.(syscall.Conn)
	if !ok {
		return false
	}
	err := Control(s, func(fd int) error {
		n, _, err := unix.Recvfrom(fd, make([]byte, 1), unix.MSG_PEEK|unix.MSG_DONTWAIT)
		closed = n == 0 && err == nil || errors.Is(err, unix.ECONNRESET)
		return nil
	})
	return closed || err != nil
}

// loseTurn ends the turn of a connection that took too long.
func (c *conn) loseTurn() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.passTurn()
}

// kept reports whether the turn of the connection continues after the answer that was just sent.
func (c *conn) kept() bool {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	kept := c.keeps
	c.keeps = false
	return kept
}

// endTurn ends the turn of the connection, and records its duration. If the turn has already ended,
// endTurn does nothing.
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
