// Command fleet measures what a fleet of hosts costs one provider: a process with the kinds
// cert and config on SQLite, and hosts with the code of activation in another, over TLS.
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
	idle    = flag.Duration("idle", 6*time.Minute, "scale: how long nothing happens: hosts report every five minutes")
	workers = flag.Int("workers", 16, "issue: how many hosts request at a time")
	lasting = flag.Duration("for", 10*time.Second, "issue: how long each rate is measured")
)

func main() {
	work := map[string]func(figures) error{"scale": scale, "issue": issue}[os.Args[1]]
	if os.Args[1] == roleProvider {
		work = func(figures) error { return provide(cluster{dir: os.Args[2], ip: os.Args[3]}) }
	} else {
		flag.CommandLine.Parse(os.Args[2:])
	}
	all := figures{}
	err := work(all)
	if err == nil && *file != "" {
		err = all.write(*file)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// figures are what was measured, by key.
type figures map[string]float64

// note: %s in the key stands for how many hosts there are.
func (f figures) note(key, unit string, v float64) {
	size := fmt.Sprint(*hosts)
	if *hosts%1000 == 0 {
		size = fmt.Sprintf("%dk", *hosts/1000)
	}
	key = strings.ReplaceAll(key, "%s", size)
	f[key] = v
	fmt.Printf("%-24s %10.2f %s\n", key, v, unit)
}

func (f figures) write(path string) error {
	b, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(b, '\n'), 0o644)
}
