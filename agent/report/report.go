// Package report collects what a host reports of itself.
package report

import (
	"context"
	"maps"
	"slices"
	"time"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/facts"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/agent/units"
)

// Config is what is read.
type Config struct {
	Instance florete.Instance
	Layout   florete.Layout
	Socket   string // of the agent
	Declared string // directory; see facts.Find

	// Units returns how units stand; default: units.List.
	Units func(ctx context.Context, names []string) ([]units.Unit, error)
}

// Collector collects reports, one at a time. Documents that have not changed are not
// decoded again.
type Collector struct {
	Config
	manifest florete.Document
	policy   florete.Envelope
	provides florete.Provided       // by that policy
	verifies *florete.Roots         // the same
	roots    *florete.ReportedRoots // of the report before
	list     *florete.Revocations
}

// Collect returns the report of this host. What cannot be read is left out.
func (c *Collector) Collect(ctx context.Context) florete.HostReport {
	r := florete.HostReport{
		Sent: florete.TimeOf(time.Now()), Release: florete.Version(), Format: florete.NewestFormat,
		Documents: []florete.ReportedDocument{}, Needs: []florete.ReportedNeed{}, Units: []florete.ReportedUnit{},
		Facts: facts.Find(string(c.Layout), c.Declared),
	}
	r.Closure, _ = c.Layout.ClosureError()
	if list, err := florete.ReadRevocations(c.Layout.Revocations(), c.list); err == nil {
		c.list, r.Revocations = list, list.Reported()
	}
	// The forwarder's is in force, which is that of the disk a moment later.
	var trusts trusts
	if s, _, err := status.Fetch(ctx, c.Socket); err == nil {
		r.Forwarder, r.Revocations = forwarder(s), s.Revocations
		trusts.add(s.Roots)
		trusts.anchors = s.Anchors
	}
	r.Pending, _ = c.Layout.PendingCommit()
	r.Undone, _ = c.Layout.Undone()
	r.Audit, r.Accepted = c.Layout.AuditFaults(), c.Layout.Accepted()
	if m, err := c.Layout.Refresh(c.manifest); err == nil {
		c.manifest = m
		r.Documents = append(r.Documents, florete.ReportedOf(m.Envelope))
		if m.Manifest().Identity.Joins && c.Layout.DeviceKeyIn() == florete.InTPM {
			r.Facts.DeviceKey = florete.InTPM
		}
		for _, n := range m.Manifest().Needs {
			r.Needs = append(r.Needs, need(c.Layout, n))
		}
	}
	if e, err := florete.ReadEnvelope(florete.Current(c.Layout.Documents()), florete.DocPolicy); err == nil {
		if e != c.policy { // of thousands of hosts it is large
			c.policy, c.provides, c.verifies = e, c.Layout.Provides(), c.policyRoots()
		}
		r.Documents = append(r.Documents, florete.ReportedOf(e))
		if c.verifies != nil {
			trusts.add(c.verifies.Fingerprints())
		}
	}
	if m := c.manifest; m.Envelope.Kind != "" {
		r.Roots = trusts.report(c.Layout, m.Manifest())
		r.Roots.Since = r.Sent
		if old := c.roots; old != nil && slices.Equal(old.Anchors, r.Roots.Anchors) {
			r.Roots.Since = old.Since
		}
		c.roots = r.Roots
	}
	if len(r.Documents) > 0 {
		r.Units = append(r.Units, c.units(ctx)...)
	}
	return r
}

func need(l florete.Layout, n florete.Need) florete.ReportedNeed {
	s, err := l.NeedState(n.ID)
	r := florete.ReportedNeed{ID: n.ID, Kind: n.Kind, State: s.State, Since: s.StateSince, Fulfilled: s.Fulfilled, Expires: s.Expires, Rotations: s.Rotations, Error: s.Error}
	if err != nil || s.State == "" {
		r.State = florete.NeedWaiting
	}
	return r
}

func forwarder(s status.Report) *florete.ReportedForwarder {
	f := &florete.ReportedForwarder{State: s.State, Connections: s.Connections, Refusals: map[string]int64{}, Problems: append([]string{}, s.Problems...), Ending: s.Ending, Fallbacks: s.Fallbacks}
	maps.Copy(f.Refusals, s.Refusals)
	return f
}

// units are those that the host should have and that do not run.
func (c *Collector) units(ctx context.Context) (bad []florete.ReportedUnit) {
	list := c.Config.Units
	if list == nil {
		list = units.List
	}
	wanted := units.Wanted(c.Instance, c.manifest.Manifest(), c.provides)
	all, err := list(ctx, slices.Sorted(maps.Keys(wanted)))
	if err != nil {
		return nil
	}
	for _, u := range all {
		if u.Load == "not-found" && !wanted[u.Name] || u.Active == "active" && u.Text == "" {
			continue
		}
		bad = append(bad, florete.ReportedUnit{Name: u.Name, Active: u.Active, Sub: u.Sub, Text: u.Text})
	}
	return bad
}
