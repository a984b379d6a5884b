package report

import (
	"maps"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/trust"
)

// trusts are the roots of everything on the host that verifies.
type trusts struct {
	of      int            // so many
	count   map[string]int // that have a root
	anchors []string       // of the forwarder's peers
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

// report adds the roots of a manifest, and of the bundles delivered with SVIDs, whose anchors
// it finds. What was not delivered verifies nothing; what cannot be read has no root, so that
// nobody takes it for acknowledged.
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

// policyRoots are those of the policy in force, nil for none.
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
