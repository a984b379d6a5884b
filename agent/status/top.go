package status

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/internal/sessions"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/terminal"
)

// Top is the load of a forwarder during an interval, as flor top shows it. For each pair of caller
// and service, it contains the connections, the bytes per second, the refusals and the transport.
type Top struct {
	Host    string    `json:"host"`
	State   string    `json:"state"`
	Time    time.Time `json:"time"`
	Seconds float64   `json:"seconds"` // length of the interval
	Rows    []TopRow  `json:"rows"`    // the busiest row is first
	// Sessions contains the open sessions at services of this host over SSH, RDP and VNC, oldest
	// first.
	Sessions []sessions.Session `json:"sessions,omitempty"`
}

// TopRow is the load that one caller causes at one port of a target. Target and Caller are empty if
// they are not in the manifest.
type TopRow struct {
	Direction   telemetry.Direction `json:"direction"`
	Target      string              `json:"target"`
	Port        string              `json:"port,omitempty"` // name of the port, if the target has several
	Caller      string              `json:"caller"`
	Connections int64               `json:"connections"`
	Opens       float64             `json:"opensPerSecond"`
	In          float64             `json:"inPerSecond"`  // bytes per second from the target to the caller
	Out         float64             `json:"outPerSecond"` // bytes per second from the caller to the target
	Refusals    int64               `json:"refusals"`     // refusals since the forwarder started
	Refused     float64             `json:"refusalsPerSecond"`
	Transport   string              `json:"transport"` // transport between the forwarders: quic, tcp, or both
}

type topKey struct {
	direction            telemetry.Direction
	target, port, caller string
}

// Between computes the load of a forwarder from two of its reports, with the time elapsed between
// them. If the forwarder was restarted in between, the counters of the first report count as zero.
func Between(before, after Report, elapsed time.Duration, at time.Time) Top {
	rows := map[topKey]*TopRow{}
	row := func(k topKey) *TopRow {
		k.target, k.caller = shortID(k.target), shortID(k.caller)
		if rows[k] == nil {
			rows[k] = &TopRow{Direction: k.direction, Target: k.target, Port: k.port, Caller: k.caller}
		}
		return rows[k]
	}
	of := func(p telemetry.Path) topKey {
		return topKey{p.Direction, p.Target.String(), p.Port, p.Caller.String()}
	}
	seconds := elapsed.Seconds()
	had := map[topKey]telemetry.Path{}
	for _, p := range before.Paths {
		had[of(p)] = p
	}
	for _, p := range after.Paths {
		was, r := had[of(p)], row(of(p))
		r.Connections = p.Live
		r.Opens = grown(was.Total, p.Total) / seconds
		r.In, r.Out = grown(was.Received, p.Received)/seconds, grown(was.Sent, p.Sent)/seconds
	}
	refused := map[telemetry.Refused]int64{}
	for _, x := range before.Refused {
		n := x.Count
		x.Count = 0
		refused[x] = n
	}
	for _, x := range after.Refused {
		n, r := x.Count, row(topKey{x.Direction, x.Target, x.Port, x.Caller})
		x.Count = 0
		r.Refusals += n
		r.Refused += grown(refused[x], n) / seconds
	}
	// A connection between forwarders carries the streams of all ports.
	for _, c := range after.PeerConnections {
		var carried []*TopRow
		for _, r := range rows {
			if r.Direction == c.Direction && r.Target == c.Target.Short() && r.Caller == c.Caller.Short() {
				carried = append(carried, r)
			}
		}
		if carried == nil {
			carried = []*TopRow{row(topKey{c.Direction, c.Target.String(), "", c.Caller.String()})}
		}
		for _, r := range carried {
			if over := string(c.Transport); !strings.Contains(r.Transport, over) {
				r.Transport = strings.TrimPrefix(r.Transport+" "+over, " ")
			}
		}
	}
	v := Top{Host: after.Host, State: after.State, Time: at, Seconds: seconds, Rows: []TopRow{}, Sessions: after.Sessions}
	for _, r := range rows {
		v.Rows = append(v.Rows, *r)
	}
	slices.SortFunc(v.Rows, func(a, b TopRow) int {
		return cmp.Or(cmp.Compare(b.In+b.Out, a.In+a.Out), cmp.Compare(b.Opens, a.Opens), cmp.Compare(b.Connections, a.Connections),
			cmp.Compare(a.Direction, b.Direction), cmp.Compare(a.Target, b.Target), cmp.Compare(a.Port, b.Port), cmp.Compare(a.Caller, b.Caller))
	})
	return v
}

// grown returns the increase of a counter between two reports.
func grown(before, after int64) float64 {
	if after < before {
		return float64(after)
	}
	return float64(after - before)
}

func shortID(id string) string {
	parsed, err := spiffe.ParseID(id)
	if err != nil {
		return ""
	}
	return parsed.Short()
}

// WatchTop calls show with the load of the forwarder once per interval, until ctx ends or show
// returns false. It then returns nil. If the forwarder does not answer, it returns an error.
func WatchTop(ctx context.Context, socket string, interval time.Duration, show func(Top) bool) error {
	before, _, err := Fetch(ctx, socket)
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
		after, _, err := Fetch(ctx, socket)
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

// PrintTop writes the load of a forwarder as a table for people.
func PrintTop(w io.Writer, v Top) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s: %s, %s\n\n", cmp.Or(v.Host, "no manifest"), v.State, v.Time.Format("15:04:05"))
	t := terminal.NewTable(&out, "", "SERVICE", "PRINCIPAL", "CONNS", "OPENS/S", "IN/S", "OUT/S", "REFUSED", "REFUSED/S", "OVER")
	for _, r := range v.Rows {
		t.Row(r.Direction, topName(strings.TrimSuffix(r.Target+":"+r.Port, ":")), topName(r.Caller), r.Connections,
			fmt.Sprintf("%.1f", r.Opens), topSize(r.In), topSize(r.Out), r.Refusals, fmt.Sprintf("%.1f", r.Refused), r.Transport)
	}
	_ = t.Flush() // writing to a buffer never fails
	if len(v.Sessions) > 0 {
		fmt.Fprintln(&out)
		_ = sessions.Print(&out, v.Sessions, v.Time)
	}
	_, err := out.WriteTo(w)
	return err
}

func topName(s string) string { return cmp.Or(s, "(others)") }

func topSize(bytes float64) string {
	const unit = 1024
	i := 0
	for ; bytes >= unit && i < 4; i++ {
		bytes /= unit
	}
	if i == 0 {
		return fmt.Sprintf("%.0f B", bytes)
	}
	return fmt.Sprintf("%.1f %ciB", bytes, " KMGT"[i])
}
