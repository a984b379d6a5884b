// Command flows measures the cost of UDP datagrams through two forwarders, which are separate
// processes. It compares them with datagrams over loopback alone.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/tests/bench/pair"
)

var (
	runs = flag.Int("runs", 3, "measure each this often and take the median")
	file = flag.String("json", "", "write the figures to `FILE`")
)

func main() {
	pair.Child()
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// measures lists the figures that are measured. Each function gets the address of an echo server.
var measures = []struct {
	key, what, unit string
	of              func(addr string) (float64, error)
}{
	{"round_trip_us", "round trip, 64 B", "µs", func(a string) (float64, error) { return latency(a, 64) }},
	{"large_round_trip_us", "round trip, 60,000 B", "µs", func(a string) (float64, error) { return latency(a, 60_000) }},
	{"exchanges_per_s", "exchanges, 64 B, 16 sockets", "/s", func(a string) (float64, error) { return exchanges(a, 64, 16) }},
	{"exchanges_1200_per_s", "exchanges, 1,200 B, 16 sockets", "/s", func(a string) (float64, error) { return exchanges(a, 1200, 16) }},
	{"new_flows_per_s", "exchanges, each of a new socket", "/s", func(a string) (float64, error) { return newFlows(a, 4) }},
}

func run() error {
	upstream, err := echo()
	if err != nil {
		return err
	}
	through, err := pair.Forwarders(upstream, document.UDP, document.AnyTransport)
	if err != nil {
		return err
	}
	defer through.Stop()
	figures := map[string]float64{}
	fmt.Printf("%-32s %10s %10s\n", "", "loopback", "florete")
	for _, m := range measures {
		var direct, tunnel []float64
		for range *runs {
			for addr, into := range map[string]*[]float64{upstream: &direct, through.Addr: &tunnel} {
				f, err := m.of(addr)
				if err != nil {
					return fmt.Errorf("%s at %s: %w", m.what, addr, err)
				}
				*into = append(*into, f)
			}
		}
		d, f := median(direct), median(tunnel)
		figures["direct_"+m.key], figures[m.key] = d, f
		fmt.Printf("%-32s %10.0f %10.0f %-3s %5.2f ×\n", m.what, d, f, m.unit, f/d)
	}
	if *file == "" {
		return nil
	}
	b, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*file, append(b, '\n'), 0o644)
}

func median(all []float64) float64 {
	slices.Sort(all)
	return all[len(all)/2]
}
