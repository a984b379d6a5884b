// Command fleet measures the load that a fleet of hosts puts on one provider. The provider is a
// process that serves the kinds cert and config and keeps its state in SQLite. The hosts are in
// another process and connect over TLS. In the benchmark scale, the hosts run activation. In the
// benchmark issue, they only send the requests that activation would send.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"strings"
	"time"
)

var (
	hosts   = flag.Int("hosts", 5000, "how many there are")
	file    = flag.String("json", "", "write the figures to `FILE`")
	engines = flag.String("store", engineSQLite+","+engineEtcd, "scale: where the provider has its state")
	idle    = flag.Duration("idle", 6*time.Minute, "scale: how long nothing happens: hosts report every five minutes")
	workers = flag.Int("workers", 16, "issue: how many hosts request at a time")
	lasting = flag.Duration("for", 10*time.Second, "issue: how long each rate is measured")
)

func main() {
	if err := run(os.Args[1], os.Args[2:]); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(what string, args []string) error {
	if what == roleProvider {
		return provide(cluster{dir: args[0], ip: args[1], shape: shape{engine: args[2]}})
	}
	flag.CommandLine.Parse(args)
	all := figures{values: map[string]float64{}}
	if err := map[string]func(figures) error{"scale": scale, "issue": issue}[what](all); err != nil || *file == "" {
		return err
	}
	return all.write(*file)
}

// figures records the results of a benchmark by key.
type figures struct {
	values map[string]float64
	suffix string // suffix of the keys
}

// note records a figure. In the key, %s is replaced by the number of hosts.
func (f figures) note(key, unit string, v float64) {
	size := fmt.Sprint(*hosts)
	if *hosts%1000 == 0 {
		size = fmt.Sprintf("%dk", *hosts/1000)
	}
	key = strings.ReplaceAll(key, "%s", size) + f.suffix
	f.values[key] = v
	fmt.Printf("%-24s %10.2f %s\n", key, v, unit)
}

func (f figures) write(path string) error {
	b, err := json.MarshalIndent(f.values, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
