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

// Recovery is the time limit for fulfilling all needs after the faults have ended. It allows for a
// quarter of an hour until a host fetches new documents, for the longest backoff of two successive
// needs, and for the timeouts of requests without an answer.
const Recovery = 30 * time.Minute

// Run runs a simulation once for each seed. The function story tells what happens to the simulated
// fleet. After it returns, Run ends all faults, waits until every need is fulfilled, and checks
// that the rules (laws) of the simulation were kept.
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

// end stops all hosts and providers. It prints the log if a law was violated.
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
