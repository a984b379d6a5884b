package kit

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// Patience is the longest time that a test waits for an event. It is much longer than any event
// takes, even on a busy machine, so a test that waits longer has failed. No test depends on the
// value.
const Patience = 3 * time.Minute

// Eventually waits until the function holds returns true. It fails the test if that takes longer
// than Patience. The argument what describes the condition in the failure message.
func Eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	if Poll(context.Background(), func() error {
		if !holds() {
			return errors.ErrUnsupported
		}
		return nil
	}) != nil {
		t.Fatalf("waited in vain for: %s", what)
	}
}

// Succeeds calls the function try until it returns nil. If that takes longer than Patience,
// Succeeds fails the test with the last error.
func Succeeds(t testing.TB, what string, try func() error) {
	t.Helper()
	if err := Poll(context.Background(), try); err != nil {
		t.Fatalf("waited in vain for: %s: %v", what, err)
	}
}

// Poll calls the function try until it returns nil. If that takes longer than Patience, or if ctx
// ends, Poll returns the last error. The pauses between the calls grow from 1 to 20 milliseconds.
func Poll(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	for pause := time.Millisecond; ; pause = min(pause*3/2, 20*time.Millisecond) {
		err := try()
		if err == nil || ctx.Err() != nil {
			return err
		}
		select {
		case <-ctx.Done():
		case <-time.After(pause):
		}
	}
}

// Reads waits for the next value of a channel and returns it. It fails the test if that takes
// longer than Patience.
func Reads[T any](t testing.TB, what string, c <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-c:
	case <-time.After(Patience):
		t.Fatalf("waited in vain for: %s", what)
	}
	return value
}

// Settled calls the function value until its result has not changed for a while, and returns the
// result. On a busy machine, Settled may return while the result is still changing. A test may
// therefore use it only to make a situation more likely.
func Settled(value func() int64) int64 {
	for last, same := value(), 0; ; {
		time.Sleep(10 * time.Millisecond)
		now := value()
		if same++; now != last {
			last, same = now, 0
		}
		if same == 30 {
			return now
		}
	}
}

// Parked waits until n goroutines are blocked in a function. The function is given by name, for
// example "net.(*TCPConn).Read". A goroutine is blocked while it waits for input, a channel or a
// lock.
func Parked(t testing.TB, n int, function string) {
	t.Helper()
	Eventually(t, fmt.Sprintf("%d of %s to wait", n, function), func() bool {
		parked, b := 0, make([]byte, 4<<20)
		for g := range strings.SplitSeq(string(b[:runtime.Stack(b, true)]), "\n\n") {
			state, _, _ := strings.Cut(g, "\n")
			if strings.Contains(g, function+"(") && !strings.Contains(state, "[run") && !strings.Contains(state, "[syscall") {
				parked++
			}
		}
		return parked >= n
	})
}

// NextSecond waits until the wall clock reaches the next full second. Tests of values in whole
// seconds use it.
func NextSecond() { time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) }
