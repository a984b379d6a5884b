package tcpstream_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"errors"
	"fmt"
	"hash"
	"io"
	"math/rand/v2"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/quic-go/quic-go"

	"github.com/florete/florete/agent/forward/tcpstream"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/tests/kit"
)

// ends are the two ends of a connection over loopback.
type ends struct {
	opener, acceptor *tcpstream.Conn
	idle             chan struct{} // the opener may open a stream
	accepted         chan wire.Stream
	raw              *tls.Conn // below the opener
}

func connect(t *testing.T) *ends {
	t.Helper()
	cert := *kit.NewCA().Issue(kit.ID("service/outline"), time.Hour)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer ln.Close()
	e := &ends{idle: make(chan struct{}, 1), accepted: make(chan wire.Stream, 1)}
	var tasks sync.WaitGroup
	accepted := make(chan *tcpstream.Conn, 1)
	go func() {
		c, err := ln.Accept()
		if err != nil {
			return
		}
		s, _ := tcpstream.NewSocket(c.(*net.TCPConn))
		tc := tls.Server(s, &tls.Config{MinVersion: tls.VersionTLS13, Certificates: []tls.Certificate{cert}, SessionTicketsDisabled: true})
		if err := tc.Handshake(); err != nil {
			t.Error(err)
		}
		accepted <- tcpstream.New(tc, nil, &tasks)
	}()
	c, err := net.Dial("tcp", ln.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	s, err := tcpstream.NewSocket(c.(*net.TCPConn))
	if err != nil {
		t.Fatal(err)
	}
	e.raw = tls.Client(s, &tls.Config{MinVersion: tls.VersionTLS13, InsecureSkipVerify: true})
	if err := e.raw.Handshake(); err != nil {
		t.Fatal(err)
	}
	e.opener = tcpstream.New(e.raw, func() { e.idle <- struct{}{} }, &tasks)
	e.acceptor = <-accepted
	tasks.Go(func() {
		for {
			s, err := e.acceptor.AcceptStream(context.Background())
			if err != nil {
				return
			}
			e.accepted <- s
		}
	})
	t.Cleanup(func() {
		e.opener.CloseWithError(0, "")
		e.acceptor.CloseWithError(0, "")
		tasks.Wait()
	})
	return e
}

// pair opens a stream and accepts it; its first byte is a greeting.
func (e *ends) pair(t *testing.T) (from, to wire.Stream) {
	t.Helper()
	o, err := e.opener.OpenStream()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := o.Write([]byte("!")); err != nil {
		t.Fatal(err)
	}
	var a wire.Stream
	select {
	case a = <-e.accepted:
	case <-time.After(kit.Patience):
		t.Fatal("no stream is accepted")
	}
	if b := make([]byte, 1); must(io.ReadFull(a, b)) != 1 || b[0] != '!' {
		t.Fatalf("first byte %q", b)
	}
	if a.StreamID() != o.StreamID() {
		t.Errorf("stream %d is accepted as %d", o.StreamID(), a.StreamID())
	}
	return o, a
}

func must(n int, err error) int {
	if err != nil {
		panic(err)
	}
	return n
}

func (e *ends) waitIdle(t *testing.T) {
	t.Helper()
	select {
	case <-e.idle:
	case <-e.opener.Context().Done():
		t.Fatalf("the connection ended: %v", context.Cause(e.opener.Context()))
	case <-time.After(kit.Patience):
		t.Fatal("the stream does not end")
	}
}

// send writes a random number of random bytes in random pieces, and ends.
func send(w wire.Stream, random *rand.Rand, sum hash.Hash) error {
	b := make([]byte, 1+random.IntN(700<<10))
	for left := random.IntN(1 << random.IntN(21)); left > 0; {
		n := min(left, 1+random.IntN(len(b)))
		for i := 0; i < n; i += 1 + n/64 {
			b[i] = byte(random.Uint32())
		}
		sum.Write(b[:n])
		if _, err := w.Write(b[:n]); err != nil {
			return err
		}
		left -= n
	}
	return w.Close()
}

// receive reads to the end, in random pieces.
func receive(r wire.Stream, random *rand.Rand, sum hash.Hash) error {
	for {
		if random.IntN(3) == 0 {
			if _, err := r.Peek(make([]byte, 1)); err != nil && err != io.EOF {
				return err
			}
		}
		b := make([]byte, 1+random.IntN(300<<10))
		n, err := r.Read(b)
		sum.Write(b[:n])
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// TestBytes checks that both directions of fifty streams, one after another over one connection,
// arrive whole, whichever direction ends first.
func TestBytes(t *testing.T) {
	e := connect(t)
	for i := range 50 {
		seed := rand.Uint64()
		var sums [4]hash.Hash
		var errs [4]error
		from, to := e.pair(t)
		var all sync.WaitGroup
		for j, f := range []func(*rand.Rand, hash.Hash) error{
			func(r *rand.Rand, h hash.Hash) error { return send(from, r, h) },
			func(r *rand.Rand, h hash.Hash) error { return receive(to, r, h) },
			func(r *rand.Rand, h hash.Hash) error { return send(to, r, h) },
			func(r *rand.Rand, h hash.Hash) error { return receive(from, r, h) },
		} {
			sums[j] = sha256.New()
			all.Go(func() { errs[j] = f(rand.New(rand.NewPCG(seed, uint64(j))), sums[j]) })
		}
		all.Wait()
		if err := errors.Join(errs[:]...); err != nil {
			t.Fatalf("stream %d, seed %d: %v", i, seed, err)
		}
		for j := 0; j < 4; j += 2 {
			if !bytes.Equal(sums[j].Sum(nil), sums[j+1].Sum(nil)) {
				t.Fatalf("stream %d, seed %d: bytes differ", i, seed)
			}
		}
		e.waitIdle(t)
	}
}

// TestReset checks that when either end resets either direction, with any data in flight, the other
// end gets the code and the connection carries the next stream.
func TestReset(t *testing.T) {
	e := connect(t)
	for i := range 100 {
		from, to := e.pair(t)
		if rand.IntN(2) == 0 {
			from, to = to, from
		}
		code := quic.StreamErrorCode(rand.IntN(1000))
		var pumps sync.WaitGroup
		if rand.IntN(2) == 0 { // bytes are under way in both directions
			for _, s := range []wire.Stream{from, to} {
				pumps.Go(func() {
					for b := make([]byte, 100<<10); ; {
						if _, err := s.Write(b); err != nil {
							return
						}
					}
				})
				if s == from {
					pumps.Go(func() { io.Copy(io.Discard, s) })
				}
			}
			time.Sleep(time.Duration(rand.IntN(5)) * time.Millisecond)
		}
		if rand.IntN(2) == 0 {
			from.CancelWrite(code)
			from.CancelRead(code)
		} else {
			from.CancelRead(code)
			from.CancelWrite(code)
		}
		_, ended := io.Copy(io.Discard, to)
		select {
		case <-to.Context().Done():
		case <-time.After(kit.Patience):
			t.Fatal("sending goes on")
		}
		var reset *quic.StreamError
		if err := context.Cause(to.Context()); !errors.As(err, &reset) || !reset.Remote || reset.ErrorCode != code {
			t.Fatalf("stream %d: sending ended with %v, want code %d", i, err, code)
		}
		if err := ended; !errors.As(err, &reset) || !reset.Remote || reset.ErrorCode != code {
			t.Fatalf("stream %d: reading ended with %v, want code %d", i, err, code)
		}
		pumps.Wait()
		e.waitIdle(t)
	}
}

// TestHalfClose checks that if one direction has ended, the other continues, and that a reset of it
// is noticed even if the stream is no longer read.
func TestHalfClose(t *testing.T) {
	e := connect(t)
	for range 20 {
		from, to := e.pair(t)
		to.Close()
		if _, err := from.Read(make([]byte, 1)); err != io.EOF {
			t.Fatalf("read %v, want the end", err)
		}
		if must(from.Write([]byte("more"))); string(read(t, to, 4)) != "more" {
			t.Fatal("other bytes")
		}
		to.CancelRead(7)
		select {
		case <-from.Context().Done():
		case <-time.After(kit.Patience):
			t.Fatal("sending goes on")
		}
		var reset *quic.StreamError
		if err := context.Cause(from.Context()); !errors.As(err, &reset) || reset.ErrorCode != 7 {
			t.Fatalf("sending ended with %v, want code 7", err)
		}
		e.waitIdle(t)
	}
}

func read(t *testing.T, s wire.Stream, n int) []byte {
	t.Helper()
	b := make([]byte, n)
	if _, err := io.ReadFull(s, b); err != nil {
		t.Fatal(err)
	}
	return b
}

// TestStalled checks that if a reset of a stream cannot be sent because the other end does not
// read, the connection is reset.
func TestStalled(t *testing.T) {
	e := connect(t)
	from, _ := e.pair(t)
	stuck := make(chan error)
	var written atomic.Int64
	go func() {
		for {
			n, err := from.Write(make([]byte, 1<<14))
			if written.Add(int64(n)); err != nil {
				stuck <- err
				return
			}
		}
	}()
	kit.Settled(written.Load)
	from.CancelWrite(1)
	select {
	case <-stuck:
	case <-time.After(kit.Patience):
		t.Fatal("the write does not end")
	}
	select {
	case <-e.opener.Context().Done():
	case <-time.After(kit.Patience):
		t.Fatal("the connection goes on")
	}
}

// TestClose checks that the reason for closing a connection reaches the other end, with any data in
// flight, and that closing ends a blocked write.
func TestClose(t *testing.T) {
	for _, opener := range []bool{true, false} {
		e := connect(t)
		from, to := e.pair(t)
		closing, other := e.acceptor, e.opener
		if opener {
			closing, other, from, to = e.opener, e.acceptor, to, from
		}
		must(from.Write(make([]byte, 100<<10))) // the closing end does not read it
		closing.CloseWithError(quic.ApplicationErrorCode(wire.Denied), "no")
		_, err := io.Copy(io.Discard, from)
		var app *quic.ApplicationError
		if !errors.As(err, &app) || !app.Remote || wire.Code(app.ErrorCode) != wire.Denied || app.ErrorMessage != "no" {
			t.Errorf("read %v, want denied", err)
		}
		if err := context.Cause(other.Context()); !errors.As(err, &app) || wire.Code(app.ErrorCode) != wire.Denied {
			t.Errorf("connection ended with %v, want denied", err)
		}
		if _, err := to.Write([]byte("x")); !errors.As(err, &app) || app.Remote {
			t.Errorf("write at the closing end: %v", err)
		}
	}
}

// TestDeadline checks that a read can be continued after it was interrupted by a deadline, even
// within a frame.
func TestDeadline(t *testing.T) {
	e := connect(t)
	from, to := e.pair(t)
	to.SetReadDeadline(time.Now())
	if _, err := to.Read(make([]byte, 1)); err == nil {
		t.Fatal("read although nothing came")
	}
	to.SetReadDeadline(time.Time{})
	must(e.raw.Write([]byte{0, 0})) // half a header
	to.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if _, err := to.Read(make([]byte, 1)); err == nil {
		t.Fatal("read although nothing came")
	}
	to.SetReadDeadline(time.Time{})
	must(e.raw.Write([]byte{0, 2, 'h', 'i'}))
	if got := string(read(t, to, 2)); got != "hi" {
		t.Errorf("read %q, want hi", got)
	}
	_ = from
}

// TestViolations checks that invalid frames, which our forwarders never send, end the connection.
func TestViolations(t *testing.T) {
	for why, frames := range map[string][]byte{
		"an unknown type":         {9, 0, 0, 0},
		"an end that is long":     {1, 0, 0, 1, 0},
		"data behind the end":     {1, 0, 0, 0, 0, 0, 0, 1, 'x'},
		"a second end":            {1, 0, 0, 0, 1, 0, 0, 0},
		"another stream's reset":  {2, 0, 0, 2, 4, 1},
		"a reset without a code":  {2, 0, 0, 1, 0},
		"a long control frame":    {4, 0, 2, 0},
		"a close without a code":  {4, 0, 0, 0},
		"bytes behind the reset":  {2, 0, 0, 3, 0, 1, 1},
		"the end of the TCP conn": nil,
	} {
		e := connect(t)
		_, to := e.pair(t)
		if frames == nil {
			e.raw.NetConn().Close()
		} else {
			must(e.raw.Write(frames))
		}
		_, err := io.Copy(io.Discard, to)
		if err == nil && why != "data behind the end" && why != "a second end" {
			t.Errorf("%s: read to the end", why)
		}
		select {
		case <-e.acceptor.Context().Done():
		case <-time.After(kit.Patience):
			t.Errorf("%s: the connection goes on", why)
		}
	}
}

// TestNothingStays checks that a connection that ended leaves no goroutine.
func TestNothingStays(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Run("streams", func(t *testing.T) {
		e := connect(t)
		for range 50 {
			from, to := e.pair(t)
			from.CancelRead(1)
			to.CancelWrite(1)
			from.Close()
			io.Copy(io.Discard, to)
			e.waitIdle(t)
		}
	})
	kit.Succeeds(t, "goroutines to end", func() error {
		n, b := runtime.NumGoroutine(), make([]byte, 1<<16)
		if n > before {
			return fmt.Errorf("%d goroutines, %d before: %s", n, before, b[:runtime.Stack(b, true)])
		}
		return nil
	})
}

// TestGoneWhileNobodyReads checks that an end that waits for its local connection notices a reset.
func TestGoneWhileNobodyReads(t *testing.T) {
	e := connect(t)
	from, _ := e.pair(t)
	must(from.Write(make([]byte, 100<<10)))
	if s := e.acceptor.Stats(); s.Received == 0 || s.Unread == 0 {
		t.Errorf("stats %+v", s)
	}
	socket := e.raw.NetConn().(*tcpstream.Socket)
	socket.SetLinger(0)
	socket.Close()
	kit.Eventually(t, "the connection to end", func() bool {
		e.acceptor.Stats()
		return e.acceptor.Context().Err() != nil
	})
}

// TestLateStop checks that a request to stop sending that arrives after its stream has ended does
// not affect the next stream.
func TestLateStop(t *testing.T) {
	e := connect(t)
	first, to := e.pair(t)
	first.Close()
	io.Copy(io.Discard, to)
	to.Close()
	io.Copy(io.Discard, first)
	e.waitIdle(t)
	from, to := e.pair(t)
	must(e.raw.Write(wire.AppendAbort(nil, wire.Stop, int64(first.StreamID()), wire.Reset)))
	must(from.Write([]byte("a")))
	read(t, to, 1) // behind the Stop
	must(to.Write([]byte("b")))
	read(t, from, 1)
}

// TestUnanswered checks that a connection is closed if the other end does not confirm the end of a
// stream.
func TestUnanswered(t *testing.T) {
	e := connect(t)
	_, to := e.pair(t) // whose opener does not read
	to.CancelRead(1)
	to.Close()
	select {
	case <-e.acceptor.Context().Done():
	case <-time.After(kit.Patience):
		t.Fatal("the connection goes on")
	}
}
