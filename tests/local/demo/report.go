package main

import (
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"strings"
	"text/tabwriter"
	"time"
)

// watch records when each need is fulfilled, and how many attempts this took.
func (s *demo) watch() {
	for _, h := range s.hosts {
		all, err := h.Needs()
		if err != nil {
			continue
		}
		for id, n := range all {
			key := h.Name + "/" + id
			s.attempts[key] = max(s.attempts[key], n.Attempts)
			if _, seen := s.took[key]; n.State == "fulfilled" && !seen {
				s.took[key] = time.Since(s.started).Seconds()
			}
		}
	}
}

// unfulfilled returns a list of the needs that are not fulfilled, with the reason for each.
func (s *demo) unfulfilled() string {
	var b strings.Builder
	for _, name := range hostNames {
		if err := s.hosts[name].Unfulfilled(); err != nil {
			fmt.Fprintf(&b, "\n%v", err)
		}
	}
	return b.String()
}

var wait = regexp.MustCompile(`next in ([0-9.a-zµ]+)`)

// waits returns the pauses between the attempts of a need, as an activation log shows them.
func waits(log, need string) string {
	b, err := os.ReadFile(log)
	if err != nil {
		return err.Error()
	}
	var all []string
	for line := range strings.Lines(string(b)) {
		if m := wait.FindStringSubmatch(line); m != nil && strings.Contains(line, need+":") {
			all = append(all, m[1])
		}
	}
	return strings.Join(all, ", ")
}

// row is a row of the table that the demo prints at its end. It shows one need.
type row struct {
	Host     string  `json:"host"`
	Need     string  `json:"need"`
	State    string  `json:"state"`
	Attempts int     `json:"attempts"`
	Seconds  float64 `json:"seconds"`
}

// report prints the table of needs, the conditions that were not met, and a summary. It returns
// true if all conditions were met.
func (s *demo) report() (bool, error) {
	var rows []row
	fulfilled := 0
	for _, name := range hostNames {
		h := s.hosts[name]
		all, err := h.Needs()
		if err != nil {
			return false, err
		}
		for _, n := range h.Manifest.Needs {
			key := name + "/" + n.ID
			r := row{name, n.ID, string(all[n.ID].State), s.attempts[key], s.took[key]}
			if r.State == "fulfilled" {
				fulfilled++
			}
			rows = append(rows, r)
		}
	}
	fmt.Println()
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "HOST\tNEED\tSTATE\tATTEMPTS\tSECONDS")
	for _, r := range rows {
		fmt.Fprintf(w, "%s\t%s\t%s\t%d\t%.1f\n", r.Host, r.Need, r.State, r.Attempts, r.Seconds)
	}
	if err := w.Flush(); err != nil {
		return false, err
	}
	fmt.Println()
	ok := fulfilled == len(rows) && passed(s.paths) == len(s.paths) && passed(s.refusals) == len(s.refusals) && passed(s.laws) == len(s.laws)
	for _, c := range append(append(append([]check(nil), s.laws...), s.paths...), s.refusals...) {
		if !c.OK {
			fmt.Printf("demo: NOT OK: %s: %s\n", c.Name, c.Found)
		}
	}
	fmt.Printf("demo: took %.1f s\n", s.seconds)
	fmt.Printf("demo: needs %d/%d fulfilled, paths %d/%d reachable, refusals %d/%d refused\n",
		fulfilled, len(rows), passed(s.paths), len(s.paths), passed(s.refusals), len(s.refusals))
	if s.json == "" {
		return ok, nil
	}
	b, err := json.MarshalIndent(map[string]any{"ok": ok, "seconds": s.seconds, "needs": rows, "paths": s.paths, "refusals": s.refusals, "laws": s.laws}, "", "  ")
	if err != nil {
		return false, err
	}
	return ok, os.WriteFile(s.json, append(b, '\n'), 0o644)
}

func passed(checks []check) (n int) {
	for _, c := range checks {
		if c.OK {
			n++
		}
	}
	return n
}
