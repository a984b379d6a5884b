package report

import (
	"maps"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/trust"
)

// trusts collects the roots that each part of the host trusts. A root may be removed from the
// cluster only when all parts trust its successor.
type trusts struct {
	of      int            // number of parts that verify certificates
	count   map[string]int // for each root, the number of parts that trust it
	anchors []string       // roots to which the certificates of the forwarder's peers lead
}

func (t *trusts) add(roots []string) {
	if t.count == nil {
		t.count = map[string]int{}
	}
	t.of++
	for _, r := range roots {
		t.count[r]++
	}
}

// report returns the roots that this host trusts and uses, as a host's report contains them. It
// adds the roots in the manifest and the roots in the bundles that were delivered with SVIDs. It
// also finds the anchors, which are the roots that the SVIDs lead to. A bundle that was not
// delivered does not count. A bundle that cannot be read counts as a part that trusts no root, so
// that no root is reported as trusted everywhere.
func (t *trusts) report(l hostdir.Layout, m document.Manifest) *hostreport.Roots {
	r := &hostreport.Roots{Trusted: []string{}, Partly: []string{}, Anchors: append([]string{}, t.anchors...)}
	roots, err := trust.NewRoots(m.TrustDomain, m.Trust.Roots)
	if err != nil {
		return r
	}
	t.add(roots.Fingerprints())
	for _, n := range m.Needs {
		if n.Kind != document.KindCert {
			continue
		}
		d, err := hostdir.LoadDelivered(l.Need(n.ID), m.TrustDomain)
		if err != nil {
			t.add(nil)
			r.Anchors = append(r.Anchors, trust.AnchorUnknown)
			continue
		}
		if d == nil {
			continue
		}
		if d.Roots != nil {
			t.add(d.Roots.Fingerprints())
		}
		r.Anchors = append(r.Anchors, roots.Anchor(d.Chain))
	}
	slices.Sort(r.Anchors)
	r.Anchors = slices.Compact(r.Anchors)
	for _, root := range slices.Sorted(maps.Keys(t.count)) {
		if t.count[root] == t.of {
			r.Trusted = append(r.Trusted, root)
		} else {
			r.Partly = append(r.Partly, root)
		}
	}
	return r
}

// policyRoots returns the roots in the policy in force, or nil if no policy is in force.
func (c *Collector) policyRoots() *trust.Roots {
	d, err := document.Read(hostdir.Current(c.Layout.Documents()), document.DocPolicy)
	if err != nil {
		return nil
	}
	p := d.Policy()
	r, err := trust.NewRoots(p.TrustDomain, p.Trust.Roots)
	if err != nil {
		return nil
	}
	return r
}
