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

// Eventually calls holds until it returns true. If that takes longer than Patience, the test fails.
// The argument what describes the condition in the failure message.
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

// Succeeds calls try until it returns nil. If that takes longer than Patience, the test fails with
// the last error. The argument what describes the action in the failure message.
func Succeeds(t testing.TB, what string, try func() error) {
	t.Helper()
	if err := Poll(context.Background(), try); err != nil {
		t.Fatalf("waited in vain for: %s: %v", what, err)
	}
}

// Poll calls try until it returns nil. After Patience, or when ctx ends, Poll returns the last
// error. The pauses between calls grow from 1 to 20 milliseconds.
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

// Reads returns the next value of a channel. If there is none within Patience, the test fails. The
// argument what describes the value in the failure message.
func Reads[T any](t testing.TB, what string, c <-chan T) (value T) {
	t.Helper()
	select {
	case value = <-c:
	case <-time.After(Patience):
		t.Fatalf("waited in vain for: %s", what)
	}
	return value
}

// Settled calls value until its result has stayed the same for about 300 milliseconds, and returns
// the result. On a busy machine the result may still change afterwards, so a test must not depend
// on it.
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

// Parked waits until n goroutines are blocked in a function, which is given by name, such as
// "net.(*TCPConn).Read". A goroutine is blocked if it neither runs nor is in a system call.
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

// NextSecond waits until the wall clock reaches the next full second, for tests of times in whole
// seconds.
func NextSecond() { time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) }
