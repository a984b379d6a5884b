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

// Patience is the longest time that a test waits for an event that must happen. It is so long that
// a test which reaches it hangs, even on a busy machine. No test depends on its value.
const Patience = 3 * time.Minute

// Eventually waits until holds returns true, and fails the test if that takes longer than Patience.
// The argument what names the condition in the test's failure.
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

// Succeeds calls try until try returns nil. It fails the test with the last error if that takes
// longer than Patience.
func Succeeds(t testing.TB, what string, try func() error) {
	t.Helper()
	if err := Poll(context.Background(), try); err != nil {
		t.Fatalf("waited in vain for: %s: %v", what, err)
	}
}

// Poll calls try until try returns nil. It returns the last error if that takes longer than
// Patience, or if ctx ends. Pauses between the calls grow from 1 to 20 milliseconds.
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

// Reads waits for the next value of the channel c and returns it. It fails the test if that takes
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

// Settled calls value until the result has not changed for a while, and returns the result. On a
// busy machine it may return while the value still grows. So a test may use Settled only to make a
// situation more likely, and must not rely on the result.
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

// Parked waits until n goroutines that execute a function, such as "net.(*TCPConn).Read", are
// waiting for input, for a channel or for a lock.
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

// NextSecond waits until the next second of the clock begins, for tests of values in whole seconds.
func NextSecond() { time.Sleep(time.Until(time.Now().Truncate(time.Second).Add(time.Second))) }
