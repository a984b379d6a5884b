// Command tunnels measures the cost of TCP connections through two forwarders. For comparison it
// also measures other tunnels, such as stunnel. Each end of a tunnel is its own process. All
// processes run on loopback.
package main

import (
	"flag"
	"fmt"
	"os"
	"regexp"
	"slices"
	"time"

	"github.com/florete/florete/tests/bench/pair"
)

var (
	runs   = flag.Int("runs", 5, "measure each this often, one tunnel after the other, and take the median")
	file   = flag.String("json", "", "write the figures to `FILE`")
	length = flag.Duration("for", 2*time.Second, "measure for that long")
	only   = flag.String("only", "", "measure what matches `REGEXP` alone, as in \"quic/bulk\"")
)

func main() {
	pair.Child()
	rawChild()
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	upstream, err := serve()
	if err != nil {
		return err
	}
	chosen, err := regexp.Compile(*only)
	if err != nil {
		return fmt.Errorf("--only: %w", err)
	}
	var started []*running
	for _, t := range tunnels {
		wanted := func(m measure) bool { return chosen.MatchString(t.name + "/" + m.key) }
		if !slices.ContainsFunc(measures, wanted) {
			continue
		}
		p, err := t.start(upstream)
		if err != nil {
			fmt.Printf("NOT RUN: %s: %v\n", t.name, err)
			continue
		}
		defer p.Stop()
		started = append(started, &running{tunnel: t, Pair: p, upstream: upstream, wanted: wanted})
	}
	figures := table{}
	for n := range *runs {
		for _, m := range measures {
			for _, t := range started {
				if !t.wanted(m) {
					continue
				}
				if err := figures.measure(t, m); err != nil {
					fmt.Printf("NOT RUN: %s/%s: %v\n", t.name, m.key, err)
				}
			}
		}
		fmt.Fprintf(os.Stderr, "run %d of %d\n", n+1, *runs)
	}
	return figures.report()
}

// running is a tunnel whose two ends are running.
type running struct {
	tunnel
	*pair.Pair
	upstream string
	wanted   func(measure) bool
}
