package transport

import (
	"context"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/kit/agenttest"
)

// TestWatch checks that each added or removed address or route is reported as a change.
func TestWatch(t *testing.T) {
	if !agenttest.OwnNetwork(t) {
		return
	}
	changed := make(chan struct{}, 100)
	ctx, cancel := context.WithCancel(t.Context())
	var watching sync.WaitGroup
	watching.Go(func() {
		if err := watchRoutes(ctx, func() { changed <- struct{}{} }); err != nil {
			t.Error(err)
		}
	})
	// Until it watches, nothing is noticed: the first change is made again and again.
	begun := make(chan struct{})
	var beginning sync.WaitGroup
	beginning.Go(func() {
		for {
			_ = exec.Command("ip", "address", "add", "10.9.9.9/32", "dev", "lo").Run()
			_ = exec.Command("ip", "address", "del", "10.9.9.9/32", "dev", "lo").Run()
			select {
			case <-begun:
				return
			case <-time.After(10 * time.Millisecond):
			}
		}
	})
	<-changed
	close(begun)
	beginning.Wait()
	for quiet := false; !quiet; {
		select {
		case <-changed:
		case <-time.After(time.Second):
			quiet = true
		}
	}
	for _, args := range [][]string{
		{"address", "add", "10.9.0.1/32", "dev", "lo"},
		{"route", "add", "blackhole", "10.8.0.0/16"},
		{"address", "add", "fd00::1/128", "dev", "lo"},
		{"route", "del", "blackhole", "10.8.0.0/16"},
		{"address", "del", "10.9.0.1/32", "dev", "lo"},
	} {
		if out, err := exec.Command("ip", args...).CombinedOutput(); err != nil {
			t.Fatalf("ip %v: %v: %s", args, err, out)
		}
		select {
		case <-changed:
		case <-time.After(kit.Patience):
			t.Fatalf("ip %v is not noticed", args)
		}
	}
	cancel()
	watching.Wait()
}
