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

// A turn may take twice as long as the turns of verified callers took recently, within these
// bounds. A slow peer then does not hold up others, and the number of handshakes under way does not
// grow when all hosts are slow.
const (
	shortTurn = 500 * time.Millisecond
	longTurn  = 5 * time.Second
)

// Rest is the time that a peer has for its TLS handshake once its turn has come. The limit is
// generous: a peer on a busy machine may need seconds, and an aborted handshake would only be
// repeated. The Listener makes room for other connections by eviction, not by this limit.
const Rest = 30 * time.Second

// longestPlace bounds the Retry-After of a connection that is turned away.
const longestPlace = time.Minute

// ErrGone is the error of Begin for a connection that its peer closed, or that the Listener closed
// to make room.
var ErrGone = errors.New("connection is closed")

// FullError is the error of Begin for a connection that would have to wait too long. Begin has
// closed the connection.
type FullError struct {
	After time.Duration // time to wait before connecting again
}

func (e *FullError) Error() string {
	return "turned away: too many connections wait for their handshakes"
}

// queue orders the connections that wait for a turn. It is guarded by the Listener's lock, except
// for turns.
type queue struct {
	turns chan struct{} // one element for each connection that has its turn
	wait  time.Duration // Limit.Wait

	pace     time.Duration // moving average of the turns of verified callers, weight 1/16
	waiting  int
	interval time.Duration // time between the beginnings of two turns while connections wait
	since    time.Time     // beginning of the current measurement
	begun    int           // turns in the current measurement
	began    time.Time     // beginning of the last turn
	given    time.Time     // last time assigned to a connection that was turned away
}

// firstInterval is the assumed interval between two turns before one was measured, for a machine
// with one processor. The interval is measured over at least measureFor, because many turns end at
// the same time. A shorter measured interval is used at once, a longer one only up to slower times
// the previous value: the first turns of a burst are slow, and peers that leave the queue early
// cost nothing.
const (
	firstInterval = 5 * time.Millisecond
	measureFor    = time.Second
	slower        = 1.25
)

func newQueue(limit Limit) queue {
	return queue{turns: make(chan struct{}, limit.Turns), wait: limit.Wait, interval: firstInterval}
}

// Begin tells the Listener of a connection that the peer has started a TLS handshake. From then on
// silent peers cannot take the connection's room. If the Listener limits turns, Begin waits for the
// turn of the connection, and then sets a deadline of Rest for the handshake.
//
// If a connection would wait longer than Limit.Wait, Begin closes it and returns a *FullError.
// Before that, Begin answers in plain HTTP with status 503 and Retry-After, which a TLS client can
// tell from a handshake. The times in Retry-After are assigned in order of arrival, at the rate of
// turns. If the connection is already closed, the error is ErrGone.
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

// takeTurn waits for a turn, or turns the connection away if the queue is too long.
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
	if c.in == nil || isClosed(c.Conn) { // do not compute a handshake for nobody
		<-l.queue.turns
		return ErrGone
	}
	c.began = time.Now()
	l.queue.note(came, c.began)
	c.turn = time.AfterFunc(min(max(2*l.queue.pace, shortTurn), longTurn), c.loseTurn)
	return nil
}

// note records the beginning of a turn. The connection began to wait at came.
func (q *queue) note(came, now time.Time) {
	if waited := came.Before(q.began); !waited { // a turn was free, so nothing was measured
		q.interval, q.since, q.begun = firstInterval, now, 0
	} else if q.begun++; now.Sub(q.since) >= measureFor {
		q.interval = min(now.Sub(q.since)/time.Duration(q.begun), time.Duration(float64(q.interval)*slower))
		q.since, q.begun = now, 0
	}
	q.began = now
}

// full reports whether a connection that arrives now must be turned away, and after which time it
// should come back.
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

// turnAway tells the peer when to come back. Everything that the peer has sent was read, so the
// close does not reset the connection before the peer receives the answer.
func (c *conn) turnAway(after time.Duration) {
	if c.SetWriteDeadline(time.Now().Add(time.Second)) == nil {
		seconds := int((after + time.Second - 1) / time.Second)
		fmt.Fprintf(c.Conn, "HTTP/1.1 503 Service Unavailable\r\nRetry-After: %d\r\nContent-Length: 0\r\nConnection: close\r\n\r\n", seconds)
	}
}

// isClosed reports whether the peer has closed the connection without sending more data. It returns
// false if it cannot tell.
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

// loseTurn ends the turn of a connection that took too long.
func (c *conn) loseTurn() {
	c.of.mu.Lock()
	defer c.of.mu.Unlock()
	c.passTurn()
}

// endTurn ends the turn, unless it was lost already, and records its length.
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
