package fleet

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/compile"
)

// Roots tells which roots the hosts of a cluster trust, and to which roots their certificates lead,
// according to their last reports. Its methods identify a root by its fingerprint. A map that they
// return has the names of hosts as keys and reasons for people as values.
type Roots struct {
	now   time.Time
	hosts map[string]hostreport.Roots
	never map[string]string // reason for which a host is missing
}

// ReadRoots collects from the reports of hosts which roots they trust and use. The third argument
// is a list of hosts to leave out. If one of these is not in the cluster, ReadRoots returns an
// error.
func ReadRoots(t compile.Topology, reports map[string]hostreport.Kept, without []string, now time.Time) (Roots, error) {
	r := Roots{now, map[string]hostreport.Roots{}, map[string]string{}}
	for _, name := range without {
		if _, ok := t.Hosts[name]; !ok {
			return r, fmt.Errorf("--without %s: cluster %s has no such host", name, t.Name)
		}
	}
	for name := range t.Hosts {
		if slices.Contains(without, name) {
			continue
		}
		received, ok := reports[name]
		if !ok {
			r.never[name] = "has never reported"
			continue
		}
		report, err := received.Decode()
		age := now.Sub(received.Received.Time).Round(time.Second)
		switch {
		case err != nil:
			r.never[name] = fmt.Sprintf("its report of %s ago cannot be read: %v", age, err)
		case report.Roots == nil:
			r.never[name] = fmt.Sprintf("its report of %s ago has no roots: upgrade Florete there", age)
		default:
			roots := *report.Roots
			roots.Since = roots.Since.Add(received.Received.Sub(report.Sent.Time)) // by the provider's clock
			r.hosts[name] = roots
		}
	}
	return r, nil
}

// Left returns an error if certificates of hosts lead to a root that is not in the flake. The
// argument pins lists the fingerprints of the roots in the flake. Such certificates would no longer
// be accepted, and their hosts could not reach a provider.
func (r Roots) Left(pins []string) error {
	hosts := map[string][]string{}
	for name, h := range r.hosts {
		for _, anchor := range h.Anchors {
			if anchor != trust.AnchorUnknown && !slices.Contains(pins, anchor) {
				hosts[anchor] = append(hosts[anchor], name)
			}
		}
	}
	var all []string
	for _, root := range slices.Sorted(maps.Keys(hosts)) {
		names := slices.Sorted(slices.Values(hosts[root]))
		all = append(all, fmt.Sprintf("trust.roots lacks root %s, to which certificates of %s lead: keep this root there until it is retired: florctl ca rotate; for a host that is gone for good, pass --without HOST", root[:min(16, len(root))], strings.Join(names, ", ")))
	}
	if len(all) == 0 {
		return nil
	}
	return errors.New(strings.Join(all, "\n"))
}

// Trusting returns the number of hosts on which every program trusts the given root.
func (r Roots) Trusting(root string) (n int) {
	return r.count(func(h hostreport.Roots) bool { return slices.Contains(h.Trusted, root) })
}

// Leading returns the number of hosts whose SVIDs lead to a root.
func (r Roots) Leading(root string) (n int) {
	return r.count(func(h hostreport.Roots) bool { return slices.Contains(h.Anchors, root) })
}

func (r Roots) count(of func(hostreport.Roots) bool) (n int) {
	for _, h := range r.hosts {
		if of(h) {
			n++
		}
	}
	return n
}

// Unacknowledged returns the hosts on which not every program trusts a root yet.
func (r Roots) Unacknowledged(root string) map[string]string {
	return r.lacking(func(h hostreport.Roots) string {
		switch {
		case slices.Contains(h.Trusted, root):
			return ""
		case slices.Contains(h.Partly, root):
			return "trusts it, but not wherever it verifies: its forwarder and the bundles beside its certificates follow its documents, florctl status shows what is wrong there where they do not"
		}
		return "does not trust it: deploy it there"
	})
}

// settled is the time for which a host must have used no other roots. It is three times as long as
// a host takes to report a connection to a peer that has not renewed its SVID.
const settled = 30 * time.Second

// Unrenewed returns the hosts on which certificates lead to another root than the given one: their
// own SVIDs, or those of connected peers. It includes hosts on which this was so until recently.
func (r Roots) Unrenewed(root string) map[string]string {
	return r.lacking(func(h hostreport.Roots) string {
		if others := slices.DeleteFunc(slices.Clone(h.Anchors), func(a string) bool { return a == root }); len(others) > 0 {
			return "has certificates, or connections to hosts with certificates, that lead to another root, until they are renewed within minutes: " + strings.Join(short(others), " ")
		}
		if age := r.now.Sub(h.Since.Time); age < settled {
			return fmt.Sprintf("had others until %s ago: wait until all hosts have reported what they are connected to", age.Round(time.Second))
		}
		return ""
	})
}

// Trusted returns the hosts on which at least one program still trusts a root.
func (r Roots) Trusted(root string) map[string]string {
	return r.lacking(func(h hostreport.Roots) string {
		switch {
		case slices.Contains(h.Trusted, root):
			return "trusts it: deploy the flake without it there"
		case slices.Contains(h.Partly, root):
			return "trusts it somewhere: its forwarder and the bundles beside its certificates follow its documents, florctl status shows what is wrong there where they do not"
		}
		return ""
	})
}

func (r Roots) lacking(why func(hostreport.Roots) string) map[string]string {
	all := map[string]string{}
	maps.Copy(all, r.never)
	for name, h := range r.hosts {
		if text := why(h); text != "" {
			all[name] = text
		}
	}
	return all
}

// short shortens fingerprints to a length that people can compare.
func short(fingerprints []string) (all []string) {
	for _, f := range fingerprints {
		all = append(all, f[:min(16, len(f))])
	}
	return all
}
