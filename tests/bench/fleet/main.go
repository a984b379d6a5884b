// Command fleet measures what a fleet of hosts costs one provider: a process with the kinds
// cert and config on SQLite, and hosts with the code of activation in another, over TLS.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"slices"
	"time"
)

var (
	hosts = flag.Int("hosts", 5000, "how many there are")
	idle  = flag.Duration("idle", 6*time.Minute, "how long nothing happens: hosts report every five minutes")
	file  = flag.String("json", "", "write the figures to `FILE`")
)

func main() {
	flag.Parse()
	work := run
	if flag.Arg(0) == roleProvider {
		work = func() error { return provide(cluster{dir: flag.Arg(1), ip: flag.Arg(2)}) }
	}
	if err := work(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp(memory(), "fleet")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	c, err := newCluster(dir, *hosts)
	if err != nil {
		return err
	}
	p, err := startProvider(c)
	if err != nil {
		return err
	}
	defer p.stop()
	figures := map[string]float64{}
	size := fmt.Sprint(*hosts)
	if *hosts%1000 == 0 {
		size = fmt.Sprintf("%dk", *hosts/1000)
	}
	note := func(key, unit string, v float64) {
		figures[fmt.Sprintf(key, size)] = v
		fmt.Printf("%-24s %10.2f %s\n", fmt.Sprintf(key, size), v, unit)
	}
	minimum, err := c.minimum()
	if err != nil {
		return err
	}
	note("cold_%s_minimum_s", "s", minimum.Seconds())

	if _, err := p.publish(c, 0); err != nil {
		return err
	}
	before := p.resident()
	used := p.used()
	profiled, err := profile("hosts")
	if err != nil {
		return err
	}
	f := startFleet(c)
	defer f.stop()
	cold, err := f.fulfilled()
	profiled()
	if err != nil {
		return err
	}
	note("cold_%s_s", "s", cold.Seconds())
	note("cold_%s_ratio", "", cold.Seconds()/minimum.Seconds())
	note("cold_%s_cpu_s", "s of the provider", (p.used() - used).Seconds())

	time.Sleep(quiet)
	for n := 1; n <= 2; n++ {
		at, err := p.publish(c, n)
		if err != nil {
			return err
		}
		took, err := f.applied(c.serial(n), at)
		if err != nil {
			return err
		}
		slices.Sort(took)
		note("publish_%s_p50_s", "s", took[len(took)/2].Seconds())
		note("publish_%s_p99_s", "s", took[len(took)*99/100].Seconds())
		note("publish_%s_max_s", "s", took[len(took)-1].Seconds())
		time.Sleep(quiet)
	}
	used, began := p.used(), time.Now()
	time.Sleep(*idle)
	note("idle_cpu_%s", "% of a core", 100*(p.used()-used).Seconds()/time.Since(began).Seconds())
	resident := p.resident()
	note("idle_mb_%s", "MiB", resident)
	note("watch_%s_mb", "MiB", resident-before)
	if *file == "" {
		return nil
	}
	b, err := json.MarshalIndent(figures, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(*file, append(b, '\n'), 0o644)
}

// quiet is a time after which what hosts do when something has come in force is over.
const quiet = 20 * time.Second

// memory is a directory where flushing takes no time: hosts have disks of their own.
func memory() string {
	if _, err := os.Stat("/dev/shm"); err == nil {
		return "/dev/shm"
	}
	return ""
}
