package main

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"
)

// table contains the measured figures, by tunnel and measure. There is one figure for each run.
type table map[string]map[string][]float64

func (t table) add(tunnel, measure string, f float64) {
	if t[tunnel] == nil {
		t[tunnel] = map[string][]float64{}
	}
	t[tunnel][measure] = append(t[tunnel][measure], f)
}

// measure measures one figure of a tunnel and adds it to the table. If the figure is a rate, it
// also adds the processor time per unit, for all processes of the tunnel together.
func (t table) measure(x *running, m measure) error {
	before, err := x.CPU()
	if err != nil {
		return err
	}
	began := time.Now()
	f, err := m.of(x)
	if err != nil {
		return err
	}
	t.add(x.name, m.key, f)
	after, err := x.CPU()
	if err == nil && m.cpu != "" {
		t.add(x.name, m.cpu, (after-before).Seconds()/time.Since(began).Seconds()/f*m.scale)
	}
	return err
}

// median returns the median of a measure of a tunnel. It returns zero if the measure was not taken.
func (t table) median(tunnel, measure string) float64 {
	all := slices.Sorted(slices.Values(t[tunnel][measure]))
	if len(all) == 0 {
		return 0
	}
	return all[len(all)/2]
}

// suffixes maps each tunnel to the part of a JSON name that stands for it.
var suffixes = map[string]string{quic: "", raw: "_raw", stunnel: "_stunnel", tcp: "_tcp", relay: "_relay", relayTCP: "_relay_tcp", ghostunnel: "_ghostunnel", direct: "_direct"}

// inJSON lists the names of the figures that are written as JSON.
var inJSON = strings.Fields(`bulk_gbps bulk_raw_gbps bulk_stunnel_gbps bulk_ghostunnel_gbps bulk_tcp_gbps bulk_relay_gbps bulk_relay_tcp_gbps bulk4_gbps
	open64_per_s open64_raw_per_s open64_stunnel_per_s open64_ghostunnel_per_s open64_tcp_per_s open64_relay_per_s open64_relay_tcp_per_s
	open1_p50_us open1_raw_p50_us http32_rps http32_raw_rps http32_stunnel_rps http32_ghostunnel_rps http32_tcp_rps http32_relay_rps idle1000_mb rss_mb`)

// key returns the JSON name of a figure. The name of the tunnel is before the unit.
func key(tunnel, measure string) string {
	what, unit, _ := strings.Cut(measure, "_")
	return what + suffixes[tunnel] + "_" + unit
}

// goals lists the limits for figures. A limit applies to the ratio of a tunnel's figure to the
// figure of the tunnel in by. Zero is no limit.
var goals = []struct {
	tunnel, by, measure string
	least, most         float64
}{
	{quic, raw, "bulk_gbps", 1.5, 0},
	{quic, stunnel, "bulk_gbps", 0.6, 0},
	{quic, raw, "bulk4_gbps", 1.5, 0},
	{quic, stunnel, "bulk4_gbps", 0.6, 0},
	{tcp, ghostunnel, "bulk_gbps", 1, 0},
	{tcp, stunnel, "bulk_gbps", 1.1, 0},
	{quic, raw, "open64_per_s", 0.95, 0},
	{tcp, ghostunnel, "open64_per_s", 4, 0},
	{quic, raw, "open1_p50_us", 0, 1.1},
	{quic, raw, "http32_rps", 1.1, 0},
	{tcp, ghostunnel, "http32_rps", 1, 0},
	{relay, quic, "bulk_gbps", 0.45, 0},
	{relay, quic, "open64_per_s", 0.5, 0},
}

func (t table) report() error {
	fmt.Printf("%-14s", "")
	for _, x := range tunnels {
		fmt.Printf(" %10s", x.name)
	}
	fmt.Println()
	figures := map[string]float64{}
	for _, m := range measures {
		t.row(m.key)
		for _, x := range tunnels {
			f := t.median(x.name, m.key)
			if k := key(x.name, m.key); f > 0 && slices.Contains(inJSON, k) {
				figures[k] = f
			}
		}
	}
	fmt.Println("\nprocessor time of all processes of a tunnel:")
	for _, m := range measures {
		if m.cpu != "" {
			t.row(m.cpu)
		}
	}
	fmt.Println()
	for _, g := range goals {
		f, by := t.median(g.tunnel, g.measure), t.median(g.by, g.measure)
		if f == 0 || by == 0 {
			continue
		}
		want, verdict := fmt.Sprintf(">= %.2f", g.least), "reached"
		if g.most > 0 {
			want = fmt.Sprintf("<= %.2f", g.most)
		}
		if f/by < g.least || g.most > 0 && f/by > g.most {
			verdict = "not reached"
		}
		fmt.Printf("%-14s %5s / %-10s %5.2f, want %s: %s%s\n", g.measure, g.tunnel, g.by, f/by, want, verdict, t.cpuRatio(g.tunnel, g.by, g.measure))
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

// cpuRatio describes the ratio of two tunnels' processor time for the same work. It returns "" if
// the measure has none.
func (t table) cpuRatio(tunnel, by, figure string) string {
	i := slices.IndexFunc(measures, func(m measure) bool { return m.key == figure })
	if i < 0 || measures[i].cpu == "" {
		return ""
	}
	return fmt.Sprintf("; %.2f of the processor time", t.median(tunnel, measures[i].cpu)/t.median(by, measures[i].cpu))
}

func (t table) row(measure string) {
	fmt.Printf("%-14s", measure)
	for _, x := range tunnels {
		fmt.Printf(" %10s", number(t.median(x.name, measure)))
	}
	fmt.Println()
}

// number formats a figure with three significant digits.
func number(f float64) string {
	switch {
	case f == 0:
		return "-"
	case f < 100:
		return fmt.Sprintf("%.2f", f)
	}
	return fmt.Sprintf("%.0f", f)
}
