// Package plan shows an operator the changes between two revisions of a cluster: the hosts that
// change, and the access that is granted or withdrawn.
//
// It compares the compiled documents of hosts, not the source of the flake. A change of the source
// that affects no document is not reported, and every changed byte of a document is reported.
package plan

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/nix/operator/compile"
)

// Plan lists the changes between two revisions of a cluster.
type Plan struct {
	Cluster string `json:"cluster"`
	// Widens reports whether the change permits access that was not permitted before.
	Widens    bool           `json:"widens"`
	Opened    []Right        `json:"opened"` // sorted
	Closed    []Right        `json:"closed"` // sorted
	Inputs    []Input        `json:"inputs,omitempty"`
	Facts     []Fact         `json:"facts,omitempty"`
	Losses    []Loss         `json:"losses,omitempty"`
	Notes     []Note         `json:"notes,omitempty"`
	Placement []Move         `json:"placement"`
	Stays     []Stay         `json:"stays,omitempty"` // services that do not move although their host is drained
	Hosts     []Host         `json:"hosts"`           // hosts that change, by name
	Unchanged int            `json:"unchanged"`
	implied   map[Right]bool // implied by another right
}

// Empty reports whether the plan contains no change.
func (p Plan) Empty() bool {
	return len(p.Opened)+len(p.Closed)+len(p.Inputs)+len(p.Facts)+len(p.Placement)+len(p.Hosts) == 0
}

// Move is a service that will run on other hosts than before.
type Move struct {
	Service string   `json:"service"`
	Before  []string `json:"before"` // hosts, sorted
	After   []string `json:"after"`
}

// Stay is a declaration that keeps something, such as a service, on a host that an operator wants
// to empty (drain).
type Stay struct {
	Drain  string `json:"drain"` // such as "hosts.forge.drain"
	What   string `json:"what"`  // such as "service wiki"
	Remedy string `json:"remedy"`
}

// stays returns the compiler's warnings about hosts that are being drained.
func stays(after compile.Snapshot) (all []Stay) {
	for _, f := range after.Warnings {
		if f.ID == "FL070" {
			all = append(all, Stay{f.Place, f.Value, f.Remedy})
		}
	}
	return all
}

// Host is a host whose documents change.
type Host struct {
	Name    string   `json:"name"`
	Change  string   `json:"change"` // "added", "removed" or "changed"
	Changes []Change `json:"changes"`
	// Units lists the units that will be restarted because the host requests their needs again. It
	// is empty for a new host.
	Units []Unit `json:"units"`
	// Format is the document format that the host's programs must support before the change is
	// deployed. It is empty if the present format is sufficient.
	Format string `json:"format,omitempty"`
	domain string // trust domain of the host
}

// Unit is a systemd unit that will be restarted because the host requests a certificate or secret
// for it again.
type Unit struct {
	Unit string `json:"unit"`
	Need string `json:"need"`
}

// Compare returns the changes between two snapshots of a cluster.
func Compare(before, after compile.Snapshot) (Plan, error) {
	p := Plan{Cluster: after.Topology.Name, Hosts: []Host{}, Placement: moves(before.Topology, after.Topology), Stays: stays(after), Inputs: inputs(before.Inputs, after.Inputs), Facts: facts(before.Topology, after.Topology)}
	rights := newDelta()
	rights.topology(before.Topology, after.Topology)
	rights.recordings(before.Topology, after.Topology)
	var unchanged []string
	var changed sync.Mutex
	var work errgroup.Group
	work.SetLimit(8)
	for name := range union(before.Documents, after.Documents) {
		was, is := before.Documents[name], after.Documents[name]
		moved := instance(before.Topology, after.Topology, name)
		if was[document.DocManifest].Body == is[document.DocManifest].Body && was[document.DocPolicy].Body == is[document.DocPolicy].Body && moved == nil {
			unchanged = append(unchanged, name)
			continue
		}
		work.Go(func() error {
			h, err := compareHost(name, was, is, moved, rights)
			changed.Lock()
			defer changed.Unlock()
			p.Hosts = append(p.Hosts, h)
			return err
		})
	}
	if err := work.Wait(); err != nil {
		return p, err
	}
	var err error
	if p.Losses, err = losses(before, after); err != nil {
		return p, err
	}
	if p.Notes, err = moved(before, after); err != nil {
		return p, err
	}
	p.Notes = append(p.Notes, replaced(before, after)...)
	p.Notes = append(p.Notes, renamed(before, after, p.Losses)...)
	for _, name := range unchanged {
		work.Go(func() error { return rights.keep(after.Documents[name]) })
	}
	if err := work.Wait(); err != nil {
		return p, err
	}
	slices.SortFunc(p.Hosts, func(a, b Host) int { return cmp.Compare(a.Name, b.Name) })
	limits, err := limited(after, p.Hosts)
	if err != nil {
		return p, err
	}
	p.Notes = append(p.Notes, limits...)
	p.Opened, p.Closed, p.implied = rights.sorted()
	p.Widens = len(p.Opened)+len(p.Facts) > 0 || slices.ContainsFunc(p.Inputs, func(i Input) bool { return i.After != "" })
	p.Unchanged = len(unchanged)
	return p, nil
}

type documents = map[string]compile.Raw

// instance returns the change of the names of a host's directories, units and accounts. No document
// contains these names.
func instance(before, after compile.Topology, host string) *Change {
	was, had := before.Hosts[host]
	is, has := after.Hosts[host]
	if !had || !has || was.Instance == is.Instance {
		return nil
	}
	return &Change{Document: "units", Path: []string{"instance"}, Before: was.Instance.String(), After: is.Instance.String()}
}

func compareHost(name string, was, is documents, moved *Change, rights *delta) (Host, error) {
	h := Host{Name: name, Change: "changed", Units: []Unit{}}
	var err error
	if len(was) == 0 {
		h.Change = "added"
	} else if len(is) == 0 {
		h.Change = "removed"
	}
	var old, now document.Manifest
	if err := read(was[document.DocManifest], &old); err != nil {
		return h, fmt.Errorf("manifest of %s: %w", name, err)
	}
	if err := read(is[document.DocManifest], &now); err != nil {
		return h, fmt.Errorf("manifest of %s: %w", name, err)
	}
	h.domain = cmp.Or(now.TrustDomain, old.TrustDomain)
	if err := rights.host(name, was, is); err != nil {
		return h, err
	}
	if h.Change != "added" { // a host that is added has no programs yet
		err = h.upgrade(was, is)
	}
	if err != nil {
		return h, fmt.Errorf("documents of %s: %w", name, err)
	}
	if h.Changes, err = changes(h.Change, was, is); err != nil {
		return h, fmt.Errorf("documents of %s: %w", name, err)
	}
	if moved != nil {
		// Under the new instance, no need is fulfilled yet.
		h.Changes, old.Needs = append(h.Changes, *moved), nil
	}
	if h.Change == "changed" {
		h.Units = append(h.Units, restarts(old.Needs, now.Needs)...)
	}
	return h, nil
}

// read decodes the body of a document into v. If the document is missing, v is unchanged.
func read(raw compile.Raw, v any) error {
	if raw.Body == "" {
		return nil
	}
	return json.Unmarshal([]byte(raw.Body), v)
}

// upgrade determines whether the documents need newer programs than before.
func (h *Host) upgrade(was, is documents) error {
	before := document.Format{Major: 1}
	after := before
	for newest, of := range map[*document.Format]documents{&before: was, &after: is} {
		for _, raw := range of {
			e, err := raw.Head()
			if err != nil {
				return err
			}
			if e.Format.Newer(*newest) {
				*newest = e.Format
			}
		}
	}
	if after.Newer(before) {
		h.Format = after.String()
	}
	return nil
}

// restarts returns the units whose needs will be requested again. A need remains fulfilled as long
// as its request, delivery and generation stay the same.
func restarts(was, is []document.Need) (units []Unit) {
	request := func(n document.Need) string {
		b, _ := json.Marshal([]any{n.Kind, n.Request, n.Deliver, n.Generation})
		return string(b)
	}
	old := map[string]string{}
	for _, n := range was {
		old[n.ID] = request(n)
	}
	for _, n := range is {
		if old[n.ID] == request(n) {
			continue
		}
		for _, unit := range n.OnChange {
			units = append(units, Unit{unit, n.ID})
		}
	}
	return units
}

func moves(before, after compile.Topology) []Move {
	all := []Move{}
	for name := range union(before.Services, after.Services) {
		m := Move{name, hosts(before, name), hosts(after, name)}
		if !slices.Equal(m.Before, m.After) {
			all = append(all, m)
		}
	}
	slices.SortFunc(all, func(a, b Move) int { return cmp.Compare(a.Service, b.Service) })
	return all
}

func hosts(t compile.Topology, service string) []string {
	return append([]string{}, t.Services[service].Hosts...)
}

func union[V any](a, b map[string]V) map[string]V {
	all := maps.Clone(a)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, b)
	return all
}
