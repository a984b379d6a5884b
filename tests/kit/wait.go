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

// Eventually waits until a condition is true: it calls holds again and again until it returns true.
// If that takes longer than Patience, the test fails. The argument what is a description of the
// condition for the failure message.
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

// Succeeds calls try again and again until it returns nil. If that takes longer than Patience, the
// test fails with the last error. The argument what is a description of the attempt for the failure
// message.
func Succeeds(t testing.TB, what string, try func() error) {
	t.Helper()
	if err := Poll(context.Background(), try); err != nil {
		t.Fatalf("waited in vain for: %s: %v", what, err)
	}
}

// Poll calls try again and again until it returns nil. After Patience, or when ctx ends, Poll
// returns the last error. The pauses between calls grow from 1 to 20 milliseconds.
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

// Reads waits for the next value of a channel and returns it. If there is none within Patience, the
// test fails. The argument what is a description of the value for the failure message.
func Reads[T any](t testing.TB, what string, c <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-c:
	case <-time.After(Patience):
		t.Fatalf("waited in vain for: %s", what)
	}
	return value
}

// Settled waits until a value stops changing. It calls the function value until the result has
// stayed the same for about 300 milliseconds, and returns the result. On a busy machine the result
// may still change afterwards, so a test must not depend on it.
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

// Parked waits until n goroutines are blocked in a function with the given name, such as
// "net.(*TCPConn).Read". A goroutine in a system call does not count as blocked.
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

// NextSecond waits until the clock reaches the next full second. Tests need it if they compare
// times that are rounded to seconds.
func NextSecond() { time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) }
