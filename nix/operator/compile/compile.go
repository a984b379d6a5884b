// Package compile runs the compiler in nix/ on a flake. It returns the documents of the cluster's
// hosts, or the faults that the compiler found.
package compile

import (
	"context"
	_ "embed"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
)

// Source identifies a cluster by its flake and its name.
type Source struct {
	// Flake is a flake reference or a directory. If it is empty, it is ".". The flake's output
	// florete.<cluster> is the result of mkCluster.
	Flake string
	// Cluster is the name of a cluster in the flake's output florete. It may be empty if the flake
	// has only one cluster.
	Cluster string
	// Args contains additional arguments for the nix command, such as --override-input NAME FLAKE.
	Args []string
}

// Cluster is a cluster that was compiled without faults, with its documents.
type Cluster struct {
	Name string
	// Documents contains the documents of each host: its manifest and, for a provider host, its
	// policy.
	Documents map[string][]document.Document
	// Systems contains the Nix system of each selected host, such as "x86_64-linux". It is "" if
	// the flake does not declare it.
	Systems map[string]string
	// Instances contains the instance of each selected host. It is "" for a host that is a member
	// of one cluster only.
	Instances map[string]hostdir.Instance
}

// Fault is an error or a warning that the compiler reports about a topology. All IDs of faults are
// in nix/check/rules.nix.
type Fault struct {
	ID       string `json:"id"`       // stable, such as "FL010"
	Severity string `json:"severity"` // "error" or "warning"
	Place    string `json:"place"`    // "services.outline.host"
	Problem  string `json:"problem"`  // "unknown host"
	Value    string `json:"value"`    // value that was found, "\"ursla\""
	Remedy   string `json:"remedy"`   // "did you mean \"ursula\"?"
}

func (f Fault) String() string {
	severity := ""
	if !f.IsError() {
		severity = f.Severity + ": "
	}
	return fmt.Sprintf("%s %s%s: %s %s; %s", f.ID, severity, f.Place, f.Problem, f.Value, f.Remedy)
}

// IsError reports whether the fault prevents compilation.
func (f Fault) IsError() bool { return f.Severity == "error" }

func errorsOf(faults []Fault) []Fault {
	return slices.DeleteFunc(slices.Clone(faults), func(f Fault) bool { return !f.IsError() })
}

// FaultsError is the error of Compile for a cluster with faults.
type FaultsError struct {
	Cluster string
	Faults  []Fault // errors, sorted by place; never empty
}

// Error returns the faults as text, as Nix prints them.
func (e *FaultsError) Error() string {
	var b strings.Builder
	noun := "faults"
	if len(e.Faults) == 1 {
		noun = "fault"
	}
	fmt.Fprintf(&b, "cluster %s has %d %s:", e.Cluster, len(e.Faults), noun)
	for _, line := range Lines(e.Faults) {
		b.WriteString("\n  " + line)
	}
	return b.String()
}

// maxPlaces bounds the places named in a line of Lines.
const maxPlaces = 20

// Lines returns faults as lines of text, without duplicates. If three or more faults differ only in
// their places, they share one line. The lines have the same form as in nix/lib/fault.nix.
func Lines(faults []Fault) (lines []string) {
	seen := map[string]bool{}
	faults = slices.DeleteFunc(slices.Clone(faults), func(f Fault) bool {
		text := f.String()
		was := seen[text]
		seen[text] = true
		return was
	})
	text := func(f Fault) string { f.Place = ""; return f.String() }
	places := map[string][]string{}
	for _, f := range faults {
		places[text(f)] = append(places[text(f)], f.Place)
	}
	for _, f := range faults {
		at := places[text(f)]
		if len(at) >= 3 {
			if f.Place != at[0] {
				continue
			}
			f.Place = strings.Join(at[:min(len(at), maxPlaces)], ", ")
			if more := len(at) - maxPlaces; more > 0 {
				f.Place += fmt.Sprintf(" and %d more", more)
			}
		}
		lines = append(lines, f.String())
	}
	return lines
}

// NoClusterError is the error if a flake does not contain the requested cluster.
type NoClusterError struct {
	Flake, Cluster string
	Has            []string // names of its clusters, sorted; may be empty
}

// Error returns a text that lists the clusters of the flake.
func (e *NoClusterError) Error() string {
	has := "none"
	if len(e.Has) > 0 {
		has = strings.Join(e.Has, ", ")
	}
	return fmt.Sprintf("%s has no cluster %q, it has %s", e.Flake, e.Cluster, has)
}

//go:embed select.nix
var selectNix string

// answer is the result of select.nix.
type answer struct {
	Each     []answer // set if several clusters are validated
	Clusters []string
	Unnamed  bool   // the output itself is a cluster
	Foreign  string // name of an output that mkCluster did not make
	Name     string
	Faults   []Fault
	Trust    struct {
		Domain string
		Roots  []string
	}
	Topology  Topology
	Validated validated
	Together  members // set if the flake has several clusters
	Hosts     []string
	Systems   map[string]string
	Instances map[string]hostdir.Instance
	Documents map[string]map[string]Raw
	Units     map[string]string
	Sysusers  string
	Sysctl    string
	Runs      map[string]Runs
}

// Compile compiles a cluster and returns the documents of the named hosts. If no host is named, it
// returns those of all hosts. If the cluster has faults, the error is a *FaultsError. An unknown
// host is an error as well.
func Compile(ctx context.Context, src Source, hosts ...string) (Cluster, error) {
	a, err := ask(ctx, src, "documents = true; hosts = [ "+quoted(hosts)+" ];")
	if err != nil {
		return Cluster{}, err
	}
	c := Cluster{Name: a.Name, Systems: a.Systems, Instances: a.Instances, Documents: map[string][]document.Document{}}
	for host, kinds := range a.Documents {
		for _, kind := range slices.Sorted(maps.Keys(kinds)) {
			d, err := kinds[kind].Open()
			if err != nil {
				return Cluster{}, fmt.Errorf("cluster %s: %w", a.Name, err)
			}
			c.Documents[host] = append(c.Documents[host], d)
		}
	}
	for _, h := range hosts {
		if c.Documents[h] == nil {
			return Cluster{}, NoHost(a.Name, h, a.Hosts)
		}
	}
	return c, nil
}

// ask evaluates the cluster once. The argument wanted contains arguments of select.nix. If the
// cluster has faults, the error is a *FaultsError.
func ask(ctx context.Context, src Source, wanted string) (answer, error) {
	expr := fmt.Sprintf("(%s) { cluster = %s; %s }", selectNix, quote(src.Cluster), wanted)
	var a answer
	if err := eval(ctx, src, expr, &a); err != nil {
		return a, err
	}
	return a, a.refusal(src)
}

// refusal returns the error in an answer. It returns nil if there is no error, or if the answer is
// for several clusters.
func (a answer) refusal(src Source) error {
	if a.Each != nil {
		return nil
	}
	switch {
	case a.Unnamed:
		return fmt.Errorf("%s: the output florete is a cluster itself, want one with a name: write florete.<name> = florete.lib.mkCluster { … };", src.ref())
	case a.Foreign != "":
		return fmt.Errorf("%s: florete.%s is not what mkCluster returned: write florete.%[2]s = florete.lib.mkCluster { … };", src.ref(), a.Foreign)
	case len(errorsOf(a.Faults)) > 0:
		return &FaultsError{a.Name, errorsOf(a.Faults)}
	case a.Name != "":
		return nil
	case src.Cluster != "":
		return &NoClusterError{src.ref(), src.Cluster, a.Clusters}
	case len(a.Clusters) == 0:
		return fmt.Errorf("%s has an empty output florete: write florete.<name> = florete.lib.mkCluster { … };", src.ref())
	default:
		return fmt.Errorf("%s has the clusters %s: choose one with --cluster", src.ref(), strings.Join(a.Clusters, ", "))
	}
}
