package sim

import (
	"flag"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

var (
	seedFlag = flag.Uint64("sim.seed", 1, "the first seed that each scenario runs with")
	runsFlag = flag.Int("sim.runs", 1, "how many seeds each scenario runs with")
)

// Recovery is how long it may take at most until all needs are fulfilled when the
// faults have ended: a quarter of an hour until a host looks for new documents, the
// longest backoff before each of two needs that come after each other, and the
// timeouts of requests that nobody will answer.
const Recovery = 30 * time.Minute

// Run tells a story about a fleet with each seed. When the story is over the faults
// end, every need has to be fulfilled, and the laws are checked.
func Run(t *testing.T, c Config, story func(*Fleet)) {
	if testing.Short() {
		t.Skip("left out by -short: it takes long")
	}
	t.Parallel()
	for i := range *runsFlag {
		seed := *seedFlag + uint64(i)
		t.Run(fmt.Sprintf("seed=%d", seed), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				f := newFleet(t, c, seed)
				defer f.end()
				story(f)
				f.Calm()
				f.Settle(Recovery)
				f.check()
			})
		})
	}
}

// end stops everybody, and tells what happened if that was against the law.
func (f *Fleet) end() {
	for _, h := range f.Hosts {
		h.Stop()
	}
	f.Down()
	f.lawsMu.Lock()
	defer f.lawsMu.Unlock()
	if f.Failed() || testing.Verbose() {
		f.Logf("replay: go test ./tests/sim -run '%s' -sim.seed %d\n%s", f.Name(), f.seed, f.tail())
	}
}
