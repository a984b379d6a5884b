// Command peers measures whether one peer's load slows down another peer of the same forwarder. The
// load always uses processor time, even if it goes elsewhere. The program therefore measures the
// quiet peer twice: while the load goes to its own forwarder, and while the same load goes to
// another forwarder on this machine. The difference is the effect inside the forwarder.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/bench/pair"
)

var (
	runs    = flag.Int("runs", 5, "measure each this often and take the median")
	lasting = flag.Duration("lasting", 2*time.Second, "how long each measurement takes")
	file    = flag.String("json", "", "write the figures to `FILE`")
	only    = flag.String("only", "", "one `NOISE` alone")
)

func main() {
	pair.Child()
	child()
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	if err := onOthers(); err != nil {
		return err
	}
	figures := map[string]float64{}
	worst := 1.0
	for _, over := range []document.Transport{document.OverQUIC, document.OverTCP} {
		c, err := start(over)
		if err != nil {
			c.Stop()
			return err
		}
		fmt.Printf("\nover %-12s %-12s %10s %10s %10s %8s\n", over, "noise", "alone", "elsewhere", "beside", "ratio")
		for _, q := range quiet {
			for _, noise := range slices.Sorted(maps.Keys(noises)) {
				if *only != "" && *only != noise {
					continue
				}
				alone, elsewhere, beside, err := c.compare(q, noise)
				if err != nil {
					c.Stop()
					return fmt.Errorf("%s beside %s over %s: %w", q.key, noise, over, err)
				}
				key := fmt.Sprintf("%s_%s_%s", over, q.key, noise)
				ratio := beside / elsewhere
				figures[key+"_alone"], figures[key+"_elsewhere"], figures[key+"_beside"], figures[key+"_ratio"] = alone, elsewhere, beside, ratio
				worst = min(worst, ratio)
				fmt.Printf("%-17s %-12s %10.0f %10.0f %10.0f %8.2f\n", q.what, noise, alone, elsewhere, beside, ratio)
			}
		}
		c.Stop()
	}
	figures["worst_ratio"] = worst
	fmt.Printf("\nworst ratio %.2f, want at least 0.80\n", worst)
	if *file == "" {
		return nil
	}
	b, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*file, append(b, '\n'), 0o644)
}

// compare measures the quiet peer with the measure q in three situations: without noise, with noise
// to the other forwarder, and with noise to the same forwarder. It takes the situations in turns.
func (c *cluster) compare(q measure, noise string) (alone, elsewhere, beside float64, err error) {
	var figures [3][]float64
	for range *runs {
		for i, to := range []*target{nil, &c.elsewhere, &c.beside} {
			f, err := c.measure(q, noise, to)
			if err != nil {
				return 0, 0, 0, err
			}
			figures[i] = append(figures[i], f)
		}
	}
	return median(figures[0]), median(figures[1]), median(figures[2]), nil
}

func (c *cluster) measure(q measure, noise string, to *target) (float64, error) {
	if to != nil {
		stop, err := c.noise(noise, *to)
		if err != nil {
			return 0, err
		}
		defer stop()
		time.Sleep(settling)
	}
	return q.of(c.quiet, *lasting)
}

// settling is the time for which noise runs before a measurement begins. By then, the effects of
// earlier noise are over.
const settling = 300 * time.Millisecond

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
