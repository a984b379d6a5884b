package status

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/terminal"
)

// Print writes a report of the forwarder as tables for people, and leaves out empty tables. IDs are
// printed without their trust domain, and times as the difference to now.
func Print(w io.Writer, r Report, now time.Time) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s: %s, %d connections\n", cmp.Or(r.Host, "no manifest"), r.State, r.Connections)
	if r.Manifest != nil {
		fmt.Fprintln(&out, strings.TrimSpace(fmt.Sprintf("cluster %s, manifest %d %s", r.Cluster, r.Manifest.Serial, r.Manifest.Rev))+age(r.Manifest.Serial, now))
		if r.Manifest.Signing != "" {
			fmt.Fprintf(&out, "manifest %s\n", terminal.Text(r.Manifest.Signing))
		}
	}
	if r.DeviceKey != "" {
		fmt.Fprintf(&out, "device key: in %s\n", map[string]string{hostdir.InTPM: "the TPM", hostdir.InFile: "a file"}[r.DeviceKey])
	}
	if r.Stale > 0 {
		fmt.Fprintf(&out, "stale: no provider has answered about this host's documents for %s: they may be outdated: flor doctor\n", time.Duration(r.Stale)*time.Second)
	}
	if r.Withheld != nil {
		fmt.Fprintf(&out, "withheld: %s: flor doctor\n", terminal.Text(r.Withheld.String()))
	}
	if l := r.Revocations; l.Overdue(now) > 0 {
		fmt.Fprintf(&out, "revocations: a newer list than %d has been due for %s: florctl revoke --renew\n", l.Number, l.Overdue(now))
	} else if ends := l.Ends(now); ends > 0 {
		fmt.Fprintf(&out, "revocations: a newer list than %d is due in %s: florctl publish, or florctl revoke --renew\n", l.Number, ends)
	}
	if c := r.Pending; c != nil {
		unless := "from a new login: flor sync --confirm " + c.ID
		if c.Unattended {
			unless = "a provider answers by then"
		}
		fmt.Fprintf(&out, "pending: %s goes back %s, unless %s\n", terminal.Text(c.String()), relative(c.Deadline.Time, now), terminal.Text(unless))
	}
	if c := r.Undone; c != nil {
		fmt.Fprintf(&out, "undone: %s went back %s, for %s: publish what is right\n", terminal.Text(c.String()), relative(c.Deadline.Time, now), c.Missing())
	}
	for _, a := range r.Audit {
		fmt.Fprintf(&out, "audit: log of kind %s on %s: %s: flor witness\n", terminal.Text(a.Kind), terminal.Text(a.Provider), terminal.Text(a.Fault))
	}
	for _, c := range r.Ending {
		fmt.Fprintf(&out, "ending: the %s certificate %s ends on %s: flor doctor\n", terminal.Text(c.Part), terminal.Text(c.Name), c.Ends.UTC().Format(time.DateOnly))
	}
	for _, x := range r.Fallbacks {
		fmt.Fprintf(&out, "over TCP: %s, %s: %s; QUIC is tried %s: flor doctor\n",
			terminal.Text(strings.Join(x.Forwarder, "|")), relative(x.Since.Time, now), terminal.Text(x.Reason), relative(x.Retry.Time, now))
	}
	for _, d := range r.Draining {
		fmt.Fprintf(&out, "draining: %s, %d connections, until they end\n", process(d.Process), d.Connections)
	}
	if r.Unconfined != "" {
		fmt.Fprintf(&out, "unconfined: %s\n", terminal.Text(r.Unconfined))
	}
	for _, p := range r.Problems {
		fmt.Fprintf(&out, "problem: %s\n", terminal.Text(p))
	}
	for _, t := range tables(r, now) {
		t.print(&out)
	}
	_, err := out.WriteTo(w)
	return err
}

// process names a process of the forwarder in a table, by its PID if the PID is known.
func process(pid int) string {
	if pid == 0 {
		return "an older process"
	}
	return fmt.Sprintf("process %d", pid)
}

// age returns the age of the manifest, as text relative to now. It computes the age from the serial
// of the manifest, which is the time of its commit unless the topology sets another serial.
func age(serial int64, now time.Time) string {
	const year2001 = 1e9
	if serial < year2001 {
		return ""
	}
	return ", of " + relative(time.Unix(serial, 0), now)
}

type table struct {
	head []any
	rows [][]any
}

func (t *table) row(cells ...any) { t.rows = append(t.rows, cells) }

func (t *table) print(w io.Writer) {
	if len(t.rows) == 0 {
		return
	}
	fmt.Fprintln(w)
	printed := terminal.NewTable(w, t.head...)
	for _, cells := range t.rows {
		printed.Row(cells...)
	}
	_ = printed.Flush() // writing to a buffer never fails
}

func tables(r Report, now time.Time) []*table {
	identities := &table{head: []any{"IDENTITY", "EXPIRES"}}
	for _, i := range r.Identities {
		expires := "not delivered"
		if i.Expires != nil {
			expires = relative(*i.Expires, now)
		}
		if i.Workload {
			expires += ", by the Workload API too"
		}
		identities.row(i.ID.Short(), expires)
	}
	needs := &table{head: []any{"NEED", "KIND", "STATE", "ATTEMPTS", "NEXT", "ERROR"}}
	for _, n := range r.Needs {
		next, problem := "", ""
		if !n.Next.IsZero() {
			next = relative(n.Next.Time, now)
		}
		if n.Error != nil {
			problem = fmt.Sprintf("%s %s: %s", n.Error.Kind, n.Error.Code, n.Error.Message)
		}
		needs.row(n.ID, n.Kind, cmp.Or(string(n.State), "unknown"), n.Attempts, next, problem)
	}
	published := &table{head: []any{"PUBLISHED", "UPSTREAM", "SERVING", "ALLOWED"}}
	for _, p := range r.Published {
		published.row(port(p.ID.Short(), p.Port), over(p.Upstream, p.Protocol), p.Serving, shorts(p.Allow))
	}
	reachable := &table{head: []any{"REACHABLE", "LISTENER", "CALLERS", "ENDPOINTS"}}
	for _, x := range r.Reachable {
		reachable.row(port(x.Name, x.Port), over(x.Listen, x.Protocol), shorts(x.Callers), endpoints(x.Endpoints, x.Via))
	}
	entries := &table{head: []any{"PUBLIC PORT", "LEADS TO", "FROM", "AS"}}
	for _, x := range r.Entries {
		entries.row(over(x.Listen, x.Protocol), port(x.ID.Short(), x.Port), from(x), strings.Join(x.ServerNames, " "))
	}
	socks := &table{head: []any{"SOCKS5 AS", "LISTENER"}}
	for _, x := range r.SOCKS {
		socks.row(x.ID.Short(), x.Listen)
	}
	uplinks := &table{head: []any{"UPLINK TO", "OVER", "SINCE", "ERROR"}}
	for _, u := range r.Uplinks {
		uplinks.row(u.Relay.Short(), cmp.Or(string(u.Transport), "not connected"), relative(u.Since, now), u.Error)
	}
	paths := &table{head: []any{"PATH TO", "OF", "PATH", "SINCE", "WHY"}}
	for _, p := range r.RelayedTo {
		paths.row(p.Target.Short(), p.Caller.Short(), p.Path, relative(p.Since, now), p.Why)
	}
	return append([]*table{identities, needs, published, reachable, entries, socks, uplinks, paths, peerConnections(r.PeerConnections)}, traffic(r.Summary, now)...)
}

// from describes who may use an entry.
func from(x Entry) string {
	var networks []string
	for _, n := range x.From {
		networks = append(networks, n.String())
	}
	who := cmp.Or(strings.Join(networks, " "), "anyone")
	switch {
	case !x.Caller.IsZero():
		who = x.Caller.Short() + " by certificate: " + who
	case x.Outside != "":
		who = x.Outside + ": " + who
	}
	return who
}

func peerConnections(rows []usage.Row) *table {
	t := &table{head: []any{"", "CONNECTION TO", "OF", "FORWARDER", "OVER", "STREAMS", "EVER"}}
	for _, l := range rows {
		used := fmt.Sprintf("%d of %d", l.Streams, l.Allowed)
		if l.Full {
			used += ", no more are let in"
		}
		t.row(l.Direction, l.Target.Short(), l.Caller.Short(), l.Remote, l.Transport, used, l.Opened)
	}
	return t
}

// endpoints formats the ways to reach a service. Endpoints and paths through relays are separated
// by spaces, and the addresses of one endpoint by bars.
func endpoints(all []document.Addresses, via []document.Via) string {
	var words []string
	for _, a := range all {
		words = append(words, strings.Join(a, "|"))
	}
	for _, v := range via {
		words = append(words, "by:"+strings.Join(v.By, ","))
	}
	return strings.Join(words, " ")
}

func traffic(s telemetry.Summary, now time.Time) []*table {
	peers := &table{head: []any{"", "TARGET", "CALLER", "LIVE", "TOTAL", "SENT", "RECEIVED", "DROPPED"}}
	for _, p := range s.Paths {
		peers.row(p.Direction, port(p.Target.Short(), p.Port), p.Caller.Short(), p.Live, p.Total, size(p.Sent), size(p.Received), p.Dropped)
	}
	refused := &table{head: []any{"REFUSED", "TIMES"}}
	for _, reason := range slices.Sorted(maps.Keys(s.Refusals)) {
		refused.row(reason, s.Refusals[reason])
	}
	last := &table{head: []any{"WHEN", "", "REASON", "TARGET", "PEER", "DETAIL"}}
	for _, x := range s.RecentRefusals[max(0, len(s.RecentRefusals)-lastShown):] {
		last.row(relative(x.Time, now), string(x.Direction), x.Reason, port(x.Target, x.Port), x.Peer, x.Detail)
	}
	return []*table{peers, refused, last}
}

const lastShown = 8

// over appends the protocol to an address unless the protocol is TCP, for example 127.0.0.1:53/udp.
func over(address string, p document.Protocol) string {
	if p == document.TCP {
		return address
	}
	return address + "/" + string(p)
}

// port appends the name of a port to the name of a service. It returns the service alone if the
// port has no name.
func port(service, name string) string { return strings.TrimSuffix(service+":"+name, ":") }

func shorts(ids []spiffe.ID) string {
	all := make([]string, len(ids))
	for i, id := range ids {
		all[i] = id.Short()
	}
	return strings.Join(all, " ")
}

// relative returns a time relative to now, for example "in 3h0m0s" or "12s ago".
func relative(t, now time.Time) string {
	if t.After(now) {
		return "in " + t.Sub(now).Round(time.Second).String()
	}
	return now.Sub(t).Round(time.Second).String() + " ago"
}

func size(n int64) string {
	const unit = 1024
	if n < unit {
		return fmt.Sprintf("%d B", n)
	}
	f, i := float64(n)/unit, 0
	for ; f >= unit && i < 4; i++ {
		f /= unit
	}
	return fmt.Sprintf("%.1f %ciB", f, "KMGTP"[i])
}
