// Package top shows what a forwarder carries now: for each service and principal, connections,
// what comes and goes in a second, refusals, and what it goes over. It reads two reports of
// the status, and counts nothing itself.
package top

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/spiffe"
)

// View is what was between two reports.
type View struct {
	Host    string    `json:"host"`
	State   string    `json:"state"`
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"` // between them
	Rows    []Row     `json:"rows"`    // the busiest first
}

// Row is of one caller of one target, at one of its ports. It is of neither where the manifest names neither.
type Row struct {
	Direction   telemetry.Direction `json:"direction"`
	Target      string              `json:"target"`
	Port        string              `json:"port,omitempty"` // of several that the target has
	Caller      string              `json:"caller"`
	Connections int64               `json:"connections"`
	Opens       float64             `json:"opensPerSecond"`
	In          float64             `json:"inPerSecond"`  // bytes from target to caller
	Out         float64             `json:"outPerSecond"` // bytes from caller to target
	Refusals    int64               `json:"refusals"`     // since the agent started
	Refused     float64             `json:"refusalsPerSecond"`
	Transport   string              `json:"transport"` // of the connections between forwarders: quic, tcp, or both
}

type key struct {
	direction            telemetry.Direction
	target, port, caller string
}

// Between is the view of two reports of one agent. One that was started again in between
// counts from zero.
func Between(before, after status.Report, elapsed time.Duration, at time.Time) View {
	rows := map[key]*Row{}
	row := func(k key) *Row {
		k.target, k.caller = short(k.target), short(k.caller)
		if rows[k] == nil {
			rows[k] = &Row{Direction: k.direction, Target: k.target, Port: k.port, Caller: k.caller}
		}
		return rows[k]
	}
	of := func(p telemetry.Path) key { return key{p.Direction, p.Target.String(), p.Port, p.Caller.String()} }
	seconds := elapsed.Seconds()
	had := map[key]telemetry.Path{}
	for _, p := range before.Paths {
		had[of(p)] = p
	}
	for _, p := range after.Paths {
		was, r := had[of(p)], row(of(p))
		r.Connections = p.Live
		r.Opens = since(was.Total, p.Total) / seconds
		r.In, r.Out = since(was.Received, p.Received)/seconds, since(was.Sent, p.Sent)/seconds
	}
	refused := map[telemetry.Refused]int64{}
	for _, x := range before.Refused {
		n := x.Count
		x.Count = 0
		refused[x] = n
	}
	for _, x := range after.Refused {
		n, r := x.Count, row(key{x.Direction, x.Target, x.Port, x.Caller})
		x.Count = 0
		r.Refusals += n
		r.Refused += since(refused[x], n) / seconds
	}
	// A connection between forwarders carries streams to all ports.
	for _, c := range after.PeerConnections {
		var carried []*Row
		for _, r := range rows {
			if r.Direction == c.Direction && r.Target == c.Target.Short() && r.Caller == c.Caller.Short() {
				carried = append(carried, r)
			}
		}
		if carried == nil {
			carried = []*Row{row(key{c.Direction, c.Target.String(), "", c.Caller.String()})}
		}
		for _, r := range carried {
			if over := string(c.Transport); !strings.Contains(r.Transport, over) {
				r.Transport = strings.TrimPrefix(r.Transport+" "+over, " ")
			}
		}
	}
	v := View{Host: after.Host, State: after.State, Time: at, Seconds: seconds, Rows: []Row{}}
	for _, r := range rows {
		v.Rows = append(v.Rows, *r)
	}
	slices.SortFunc(v.Rows, func(a, b Row) int {
		return cmp.Or(cmp.Compare(b.In+b.Out, a.In+a.Out), cmp.Compare(b.Opens, a.Opens), cmp.Compare(b.Connections, a.Connections),
			cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Caller, b.Caller))
	})
	return v
}

// since is by how much a counter has grown.
func since(before, after int64) float64 {
	if after < before {
		return float64(after)
	}
	return float64(after - before)
}

func short(id string) string {
	parsed, err := spiffe.ParseID(id)
	if err != nil {
		return ""
	}
	return parsed.Short()
}

// Watch shows a view of each interval until ctx ends or show returns false.
func Watch(ctx context.Context, socket string, interval time.Duration, show func(View) bool) error {
	before, _, err := status.Fetch(ctx, socket)
	if err != nil {
		return err
	}
	last, tick := time.Now(), time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		after, _, err := status.Fetch(ctx, socket)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		now := time.Now()
		if !show(Between(before, after, now.Sub(last), now)) {
			return nil
		}
		before, last = after, now
	}
}
