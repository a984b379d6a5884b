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

// Collect returns the report of this host. What cannot be read is left out.
func Collect(ctx context.Context, c Config) florete.HostReport {
	r := florete.HostReport{
		Sent: florete.TimeOf(time.Now()), Release: florete.Version(), Format: florete.NewestFormat,
		Documents: []florete.ReportedDocument{}, Needs: []florete.ReportedNeed{}, Units: []florete.ReportedUnit{},
		Facts: facts.Find(string(c.Layout), c.Declared), Forwarder: forwarder(ctx, c.Socket),
	}
	r.Closure, _ = c.Layout.ClosureError()
	for _, kind := range []string{florete.DocManifest, florete.DocPolicy} {
		d, err := florete.Read(florete.Current(c.Layout.Documents()), kind)
		if err != nil {
			continue
		}
		e := d.Envelope
		r.Documents = append(r.Documents, florete.ReportedDocument{Kind: kind, Serial: e.Serial, Digest: e.Digest, Rev: e.Rev})
		m := d.Manifest()
		for _, n := range m.Needs {
			r.Needs = append(r.Needs, need(c.Layout, n))
		}
		if kind == florete.DocManifest {
			r.Units = append(r.Units, c.units(ctx, m)...)
		}
	}
	return r
}

func need(l florete.Layout, n florete.Need) florete.ReportedNeed {
	s, err := l.NeedState(n.ID)
	r := florete.ReportedNeed{ID: n.ID, Kind: n.Kind, State: s.State, Since: s.StateSince, Expires: s.Expires, Error: s.Error}
	if err != nil || s.State == "" {
		r.State = florete.NeedWaiting
	}
	return r
}

func forwarder(ctx context.Context, socket string) *florete.ReportedForwarder {
	s, _, err := status.Fetch(ctx, socket)
	if err != nil {
		return nil
	}
	f := &florete.ReportedForwarder{State: s.State, Connections: s.Connections, Refusals: map[string]int64{}, Problems: append([]string{}, s.Problems...)}
	maps.Copy(f.Refusals, s.Refusals)
	return f
}

// units are those that the host should have and that do not run.
func (c Config) units(ctx context.Context, m florete.Manifest) (bad []florete.ReportedUnit) {
	list := c.Units
	if list == nil {
		list = units.List
	}
	wanted := units.Wanted(c.Instance, c.Layout, m)
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
