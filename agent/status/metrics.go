package status

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/florete/florete/agent/forward/telemetry"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/httpreply"
	"github.com/florete/florete/internal/release"
	"github.com/florete/florete/internal/spiffe"
)

// series is a metric of the forwarder in the form that the Prometheus client needs.
type series struct {
	desc *prometheus.Desc
	kind prometheus.ValueType
}

// description describes a metric for docs/reference/metrics.md.
type description struct {
	desc             *prometheus.Desc
	name, kind, help string
	labels           []string
}

// descriptions contains all metrics of the forwarder, in the order in which they are declared
// below.
var descriptions []description

func newMetric(kind, name, help string, labels ...string) series {
	d := prometheus.NewDesc("florete_"+name, help, labels, nil)
	descriptions = append(descriptions, description{d, "florete_" + name, kind, help, labels})
	if kind == gauge {
		return series{d, prometheus.GaugeValue}
	}
	return series{d, prometheus.CounterValue}
}

// These constants name the types of metrics that Prometheus distinguishes.
const (
	counter   = "counter"
	gauge     = "gauge"
	histogram = "histogram"
)

var (
	info      = newMetric(gauge, "info", "Always 1. The labels name the host and the version that it runs.", "cluster", "host", "version")
	running   = newMetric(gauge, "running", "1 if the node's identity is delivered and the forwarder carries connections, else 0.")
	problems  = newMetric(gauge, "problems", "Parts of the manifest that could not be put in force; flor status lists them.")
	serial    = newMetric(gauge, "manifest_serial", "Serial of the manifest in force.")
	stale     = newMetric(gauge, "documents_stale_seconds", "Seconds since a provider last answered about this host's documents, if that is longer than providers.config.staleAfter, else 0.")
	withheld  = newMetric(gauge, "documents_withheld_timestamp_seconds", "Unix time at which documents became due that the revocation list names and this host does not have, or 0 if it has them.")
	revoked   = newMetric(gauge, "revocation_list_number", "Number of the revocation list in force, or 0 without one.")
	listDue   = newMetric(gauge, "revocation_list_next_update_timestamp_seconds", "Unix time at which a newer revocation list is due, or 0 without a list.")
	auditing  = newMetric(gauge, "audit_faults", "Audit logs of providers that were edited, removed or rolled back, and that nobody accepted; flor witness lists them.")
	expires   = newMetric(gauge, "svid_expiry_timestamp_seconds", "Unix time at which an SVID of this host expires, or 0 if none was delivered.", "identity")
	live      = newMetric(gauge, "connections", "Open TCP connections and UDP sessions.", "direction", "target", "port", "caller")
	begun     = newMetric(counter, "connections_total", "TCP connections and UDP sessions since the forwarder started.", "direction", "target", "port", "caller")
	sent      = newMetric(counter, "sent_bytes_total", "Bytes from caller to target.", "direction", "target", "port", "caller")
	received  = newMetric(counter, "received_bytes_total", "Bytes from target to caller.", "direction", "target", "port", "caller")
	dropped   = newMetric(counter, "dropped_datagrams_total", "Datagrams that found a queue full or exceeded a limit.", "direction", "target", "port", "caller")
	refusals  = newMetric(counter, "refusals_total", "Refused connections, streams and datagrams by reason; target and caller are empty if the manifest does not name them.", "direction", "reason", "target", "port", "caller")
	opens     = newMetric(histogram, "open_seconds", "Time until the upstream was connected.", "direction", "target", "port")
	peers     = newMetric(gauge, "peer_connections", "Open connections between forwarders; a caller's TCP connections to one forwarder count as one.", "direction", "target", "caller", "transport")
	streams   = newMetric(gauge, "peer_streams", "Open streams of connections between forwarders.", "direction", "target", "caller", "transport")
	shaken    = newMetric(counter, "handshakes_total", "Connections between forwarders since the start whose handshake let both sides in.", "direction", "target", "caller", "transport")
	fallbacks = newMetric(gauge, "fallback_timestamp_seconds", "Unix time since which only TCP leads to a forwarder, because UDP does not pass.", "forwarder")
	uplinks   = newMetric(gauge, "uplink_down_timestamp_seconds", "Unix time since which this host has no connection to one of its relays, or 0 while it has one.", "relay")
)

// collector gives Prometheus the metrics of the forwarder. It computes the metrics from a new
// report each time that Prometheus reads them.
type collector struct{ report func() Report }

func (c collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range descriptions {
		ch <- d.desc
	}
}

func (c collector) Collect(ch chan<- prometheus.Metric) {
	set := func(m series, value float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(m.desc, m.kind, value, labels...)
	}
	r := c.report()
	set(info, 1, r.Cluster, r.Host, release.Version())
	set(running, truth(r.State == hostreport.Running))
	set(problems, float64(len(r.Problems)))
	if r.Manifest != nil {
		set(serial, float64(r.Manifest.Serial))
	}
	set(stale, float64(r.Stale))
	if w := r.Withheld; w != nil {
		set(withheld, float64(w.Since.Seconds()))
	} else {
		set(withheld, 0)
	}
	set(auditing, float64(len(r.Audit)))
	if l := r.Revocations; l != nil {
		set(revoked, float64(l.Number))
		set(listDue, float64(l.NextUpdate.Seconds()))
	} else {
		set(revoked, 0)
		set(listDue, 0)
	}
	for _, i := range r.Identities {
		set(expires, timestamp(i.Expires), i.ID.Short())
	}
	for _, x := range r.Fallbacks {
		set(fallbacks, float64(x.Since.Unix()), strings.Join(x.Forwarder, " "))
	}
	for _, u := range r.Uplinks {
		down := 0.0
		if u.Transport == "" {
			down = float64(u.Since.Unix())
		}
		set(uplinks, down, u.Relay.Name())
	}
	for _, p := range r.Paths {
		labels := []string{string(p.Direction), p.Target.Short(), p.Port, p.Caller.Short()}
		set(live, float64(p.Live), labels...)
		set(begun, float64(p.Total), labels...)
		set(sent, float64(p.Sent), labels...)
		set(received, float64(p.Received), labels...)
		set(dropped, float64(p.Dropped), labels...)
	}
	for _, x := range r.Refused {
		set(refusals, float64(x.Count), string(x.Direction), x.Reason, shortLabel(x.Target), x.Port, shortLabel(x.Caller))
	}
	for _, h := range r.Handshakes {
		set(shaken, float64(h.Count), string(h.Direction), h.Target.Short(), h.Caller.Short(), string(h.Transport))
	}
	collectPeers(r, set)
	collectOpens(r, ch)
}

// collectPeers sets the metrics of connections between forwarders. A report has a row for each
// connection, and collectPeers adds up the rows of the same peer.
func collectPeers(r Report, set func(series, float64, ...string)) {
	type peer struct{ direction, target, caller, transport string }
	sums := map[peer][2]int64{}
	for _, row := range r.PeerConnections {
		k := peer{string(row.Direction), row.Target.Short(), row.Caller.Short(), string(row.Transport)}
		sum := sums[k]
		sums[k] = [2]int64{sum[0] + 1, sum[1] + row.Streams}
	}
	for k, sum := range sums {
		set(peers, float64(sum[0]), k.direction, k.target, k.caller, k.transport)
		set(streams, float64(sum[1]), k.direction, k.target, k.caller, k.transport)
	}
}

// collectOpens sets the histogram of the times to open a connection. It adds up the histograms of
// all callers, because a histogram for each caller would need too many series.
func collectOpens(r Report, ch chan<- prometheus.Metric) {
	type target struct{ direction, target, port string }
	type sum struct {
		nanoseconds int64
		buckets     []int64
	}
	sums := map[target]sum{}
	for _, p := range r.Paths {
		if p.Opens.Buckets == nil {
			continue
		}
		k := target{string(p.Direction), p.Target.Short(), p.Port}
		s := sums[k]
		s.buckets = slices.Grow(s.buckets, len(p.Opens.Buckets))[:len(p.Opens.Buckets)]
		s.nanoseconds += p.Opens.Nanoseconds
		for i, n := range p.Opens.Buckets {
			s.buckets[i] += n
		}
		sums[k] = s
	}
	for k, s := range sums {
		within, count := map[float64]uint64{}, uint64(0)
		for i, n := range s.buckets {
			count += uint64(n)
			if i < len(telemetry.Bounds) {
				within[telemetry.Bounds[i].Seconds()] = count
			}
		}
		ch <- prometheus.MustNewConstHistogram(opens.desc, count, time.Duration(s.nanoseconds).Seconds(), within, k.direction, k.target, k.port)
	}
}

// shortLabel returns the short form of a SPIFFE ID for use as a label. It returns "" if the text is
// not a SPIFFE ID.
func shortLabel(id string) string {
	parsed, err := spiffe.ParseID(id)
	if err != nil {
		return ""
	}
	return parsed.Short()
}

func timestamp(t *time.Time) float64 {
	if t == nil {
		return 0
	}
	return float64(t.Unix())
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// metricsTimeout is the time limit for reading a request for metrics and for its response.
const metricsTimeout = 10 * time.Second

// metricsLimit is the limit of connections to the metrics page. It is low, because few programs
// read metrics.
var metricsLimit = conns.Limit{Total: 32, Prefix: 32}

// MetricsBeside returns the path of the forwarder's metrics socket, which is in the same directory
// as the given status socket.
func MetricsBeside(socket string) string { return Beside(socket, "metrics") }

// ListenMetrics listens on a TCP address for requests for metrics. It returns an error unless the
// address is on loopback. Every account of the host can read the metrics there.
func ListenMetrics(addr string) (net.Listener, error) {
	at, err := netip.ParseAddrPort(addr)
	if err != nil || !at.Addr().IsLoopback() {
		return nil, fmt.Errorf("metrics at %q, want a loopback address and a port: 127.0.0.1:9464; for others, publish the Unix socket as a service", addr)
	}
	ln, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, fmt.Errorf("metrics: %w", err)
	}
	return ln, nil
}

// MetricsPage serves the metrics of the forwarder over HTTP to Prometheus, in its text format (GET
// /metrics). The labels of a metric are
//
//   - services, principals and forwarders in the manifest,
//   - names of ports, empty for a service with one port, and
//   - fixed words.
//
// Connections, addresses of callers and unknown names get no time series, so that their number is
// limited.
type MetricsPage struct {
	report   func() Report
	registry *prometheus.Registry
}

// NewMetricsPage returns a page with the metrics of the forwarder and of this process. At each
// request, it calls report for the state of the forwarder.
func NewMetricsPage(report func() Report) *MetricsPage {
	p := &MetricsPage{report, prometheus.NewRegistry()}
	p.registry.MustRegister(collector{report}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return p
}

// Serve answers requests for metrics on ln until ctx ends, and then closes ln.
func (p *MetricsPage) Serve(ctx context.Context, ln net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		report := p.report()
		if status, err := httpreply.OwnPage(r, func(name string) bool { return ownMetricsName(name, report) }, "the name of the service that publishes the metrics, or a loopback address"); err != nil {
			http.Error(w, err.Error(), status)
			return
		}
		families, err := p.registry.Gather()
		if err != nil {
			http.Error(w, err.Error(), http.StatusInternalServerError)
			return
		}
		format := expfmt.NewFormat(expfmt.TypeTextPlain)
		w.Header().Set("Content-Type", string(format))
		encoder := expfmt.NewEncoder(w, format)
		for _, f := range families {
			if err := encoder.Encode(f); err != nil {
				return // the reader has closed the connection
			}
		}
	})
	server := &http.Server{Handler: mux, ReadTimeout: metricsTimeout, WriteTimeout: metricsTimeout, ConnContext: conns.Context, ConnState: conns.State}
	_ = conns.Serve(ctx, server, conns.Listen(conns.Patient(ln, nil), metricsLimit)) // Patient handles all errors
}

// ownMetricsName reports whether a request names this host, so that a web page cannot read the
// metrics through DNS rebinding. The accepted names are "agent", loopback addresses, and the name
// of a service that this host publishes from a Unix socket.
func ownMetricsName(host string, report Report) bool {
	if ip, err := netip.ParseAddr(host); err == nil {
		return ip.IsLoopback()
	}
	if host == "agent" || host == "localhost" {
		return true
	}
	for _, p := range report.Published {
		if d, err := spiffe.Dial(p.ID); err == nil && strings.HasPrefix(p.Upstream, "unix:") && spiffe.Render(d) == host {
			return true
		}
	}
	return false
}
