// Command compiler measures the time and memory for compiling a cluster with Nix. See measure.nix.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"

	"github.com/florete/florete/nix/operator/compile"
)

const here = "tests/bench/compiler"

var (
	runs = flag.Int("runs", 3, "measure each this often and take the best")
	file = flag.String("json", "", "write the figures to `FILE`")
)

func main() {
	flag.Parse()
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	values := filepath.Join(dir, "values.json")
	if err := save(values, "values 10000"); err != nil {
		return err
	}

	m := measurer{}
	small, full := m.best("full 1000"), m.best("full 10000")
	baseline, read := m.best("baseline "+values), m.best("read "+values)
	one, more := m.best("one 10000 5"), m.best("one 10000 10")
	visit, visitMore := m.best("visit 10000 5"), m.best("visit 10000 10")
	validate := m.best("validate 10000")
	if m.err != nil {
		return m.err
	}
	figures := map[string]float64{
		"full_1k_s": small.seconds, "full_10k_s": full.seconds, "baseline_10k_s": baseline.seconds,
		"one_of_10k_s": one.seconds, "one_of_10k_twice_services_s": more.seconds,
		"visit_10k_s": visit.seconds, "visit_10k_twice_services_s": visitMore.seconds,
		"peak_10k_mb": full.megabytes, "validate_10k_s": validate.seconds,
	}
	for _, line := range []struct {
		what    string
		figure  float64
		comment string
	}{
		{"full, 1,000 hosts", small.seconds, ""},
		{"full, 10,000 hosts", full.seconds, fmt.Sprintf("%.1f × 1,000 hosts, %.0f MB", full.seconds/small.seconds, full.megabytes)},
		{"baseline, 10,000 hosts", baseline.seconds, fmt.Sprintf("full is %.1f × this, %.1f × without reading (%.1f s)",
			full.seconds/baseline.seconds, full.seconds/(baseline.seconds-read.seconds), read.seconds)},
		{"one host of 10,000", one.seconds, fmt.Sprintf("%.2f of full, %.0f MB; reading what it must of the topology takes %.2f s",
			one.seconds/full.seconds, one.megabytes, visit.seconds)},
		{"  twice the services elsewhere", more.seconds, fmt.Sprintf("%.2f × one, %.2f × without the reading (%.2f s)",
			more.seconds/one.seconds, (more.seconds-visitMore.seconds)/(one.seconds-visit.seconds), visitMore.seconds)},
		{"validate, 10,000 hosts", validate.seconds, fmt.Sprintf("%.0f MB", validate.megabytes)},
	} {
		fmt.Printf("%-30s %6.2f s  %s\n", line.what, line.figure, line.comment)
	}
	if err := compare(); err != nil {
		return err
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

// compare measures the cost of Florete's own types, compared with the types of the module system of
// nixpkgs.
func compare() error {
	lib := os.Getenv("NIXPKGS_LIB")
	if lib == "" {
		fmt.Println("NOT COMPARED with nixpkgs' module system: set NIXPKGS_LIB to the lib folder of nixpkgs")
		return nil
	}
	m := measurer{}
	ours, theirs := m.best("types 1000"), m.best("modules "+lib+" 1000")
	if m.err == nil {
		fmt.Printf("%-30s %6.2f s  the module system of nixpkgs %.2f s, %.1f ×, counting the topology itself\n",
			"types, 1,000 hosts", ours.seconds, theirs.seconds, theirs.seconds/ours.seconds)
	}
	return m.err
}

// cost is the processor time and the memory that a process used. Processor time does not depend on
// the load of the machine, because Nix waits for nothing else.
type cost struct{ seconds, megabytes float64 }

type measurer struct{ err error }

// best evaluates a function of measure.nix several times and returns the lowest cost.
func (m *measurer) best(call string) cost {
	var least cost
	for i := range *runs {
		if m.err != nil {
			return cost{}
		}
		cmd := evaluate(call)
		if m.err = cmd.Run(); m.err != nil {
			m.err = fmt.Errorf("%s: %w", call, m.err)
		} else if c := took(cmd); i == 0 || c.seconds < least.seconds {
			least = c
		}
	}
	return least
}

func took(cmd *exec.Cmd) cost {
	p := cmd.ProcessState
	usage := p.SysUsage().(*syscall.Rusage)
	return cost{(p.UserTime() + p.SystemTime()).Seconds(), float64(usage.Maxrss) / 1024}
}

func evaluate(call string, flags ...string) *exec.Cmd {
	args := append([]string{"--eval", "--strict", "-E", "(import ./" + here + "/measure.nix)." + call}, flags...)
	cmd := exec.Command("nix-instantiate", args...)
	cmd.Env = compile.Environ()
	cmd.Stderr = os.Stderr
	return cmd
}

func save(path, call string) error {
	out, err := os.Create(path)
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := evaluate(call, "--json")
	cmd.Stdout = out
	return cmd.Run()
}
