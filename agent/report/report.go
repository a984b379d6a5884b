// Package report collects the data that a host reports to its providers: the state of its needs,
// its units and its trust.
package report

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/agent/units"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/recording"
	"github.com/florete/florete/internal/release"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/internal/unixtime"
)

// Config describes the host that a Collector reports about.
type Config struct {
	Instance hostdir.Instance
	Layout   hostdir.Layout
	Socket   string // path of the forwarder's status socket
	Declared string // directory of declared capabilities, see FindFacts

	// Units returns the state of systemd units by their names. The default is units.List.
	Units func(ctx context.Context, names []string) ([]units.Unit, error)
}

// Collector makes the reports of a host. Between reports, it keeps the decoded documents, and
// decodes a document again only if it has changed. Only one call of Collect may run at a time.
type Collector struct {
	Config
	manifest document.Document
	policy   document.Envelope
	verifies *trust.Roots      // roots in the policy
	roots    *hostreport.Roots // roots in the previous report
	list     *trust.Revocations
}

// Collect returns a new report of this host. A part that cannot be read is left out of the report.
func (c *Collector) Collect(ctx context.Context) hostreport.Report {
	r := hostreport.Report{
		Sent: unixtime.Of(time.Now()), Release: release.Version(), Format: document.NewestFormat,
		Documents: []document.Reported{}, Needs: []hostreport.Need{}, Units: []hostreport.Unit{},
		Facts: FindFacts(string(c.Layout), c.Declared),
	}
	r.Closure, _ = c.Layout.ClosureError()
	if list, err := trust.ReadRevocations(c.Layout.Revocations(), c.list); err == nil {
		c.list, r.Revocations = list, list.Reported()
	}
	// The forwarder reports the revocation list that it uses. The list on disk may be newer, but
	// the forwarder will soon use it.
	var trusts trusts
	if s, _, err := status.Fetch(ctx, c.Socket); err == nil {
		r.Forwarder, r.Revocations = forwarder(s), s.Revocations
		trusts.add(s.Roots)
		trusts.anchors = s.Anchors
	}
	r.Pending, _ = c.Layout.PendingChange()
	r.Undone, _ = c.Layout.Undone()
	r.Audit, r.Accepted = c.Layout.AuditFaults(), c.Layout.Accepted()
	if finished, err := recording.ReadFinished(c.Layout.FinishedRecordings()); err == nil {
		r.Recordings = finished.After(c.Layout.ConfirmedRecordings())
	}
	if m, err := c.Layout.Refresh(c.manifest); err == nil {
		c.manifest = m
		r.Documents = append(r.Documents, document.ReportedOf(m.Envelope))
		r.Withheld = c.Layout.Withheld(m.Manifest(), c.list, r.Sent.Time)
		if m.Manifest().Identity.Joins && c.Layout.DeviceKeyIn() == hostdir.InTPM {
			r.Facts.DeviceKey = hostdir.InTPM
		}
		for _, n := range m.Manifest().Needs {
			r.Needs = append(r.Needs, need(c.Layout, n))
		}
	}
	if e, err := document.ReadEnvelope(hostdir.Current(c.Layout.Documents()), document.DocPolicy); err == nil {
		if e != c.policy { // the policy is large in a cluster of thousands of hosts
			c.policy, c.verifies = e, c.policyRoots()
		}
		r.Documents = append(r.Documents, document.ReportedOf(e))
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

func need(l hostdir.Layout, n document.Need) hostreport.Need {
	s, err := l.NeedState(n.ID)
	r := hostreport.Need{ID: n.ID, Kind: n.Kind, State: s.State, Since: s.StateSince, Fulfilled: s.Fulfilled, Expires: s.Expires, Rotations: s.Rotations, Error: s.Error}
	if err != nil || s.State == "" {
		r.State = hostdir.NeedWaiting
	}
	return r
}

func forwarder(s status.Report) *hostreport.Forwarder {
	f := &hostreport.Forwarder{State: s.State, Connections: s.Connections, Refusals: map[string]int64{}, Problems: append([]string{}, s.Problems...), Ending: s.Ending, Fallbacks: s.Fallbacks}
	maps.Copy(f.Refusals, s.Refusals)
	return f
}

// units returns the systemd units that should run on this host but do not.
func (c *Collector) units(ctx context.Context) (bad []hostreport.Unit) {
	list := c.Config.Units
	if list == nil {
		list = units.List
	}
	all, err := units.Expected(ctx, list, c.Instance, c.manifest.Manifest())
	if errors.Is(err, units.ErrNoSystemd) {
		return nil
	}
	if err != nil { // if the units cannot be examined, they count as not running
		return []hostreport.Unit{{Name: "dbus.service", Active: "inactive", Text: err.Error()}}
	}
	for _, u := range all {
		if u.Active != "active" || u.Text != "" {
			bad = append(bad, hostreport.Unit{Name: u.Name, Active: u.Active, Sub: u.Sub, Text: u.Text})
		}
	}
	return bad
}
