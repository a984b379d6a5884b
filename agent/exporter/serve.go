package exporter

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/common/expfmt"

	"github.com/florete/florete/agent/status"
	"github.com/florete/florete/internal/conns"
	"github.com/florete/florete/internal/httpreply"
	"github.com/florete/florete/internal/spiffe"
)

// timeout bounds a request.
const timeout = 10 * time.Second

// limit of connections: whoever reads the metrics is not many.
var limit = conns.Limit{Total: 32, Prefix: 32}

// Beside is the socket next to that of the status, with metrics in its name instead.
func Beside(socket string) string { return status.Beside(socket, "metrics") }

// ListenTCP binds a loopback address, where every account of the host may read the metrics.
func ListenTCP(addr string) (net.Listener, error) {
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

// Page is the metrics.
type Page struct {
	report   func() status.Report
	registry *prometheus.Registry
}

// New returns the metrics of what reports have, and of this process.
func New(report func() status.Report) *Page {
	p := &Page{report, prometheus.NewRegistry()}
	p.registry.MustRegister(collector{report}, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return p
}

// Serve answers on ln until ctx ends, and closes it.
func (p *Page) Serve(ctx context.Context, ln net.Listener) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) {
		report := p.report()
		if status, err := httpreply.OwnPage(r, func(name string) bool { return own(name, report) }, "the name of the service that publishes the metrics, or a loopback address"); err != nil {
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
				return // the reader has gone
			}
		}
	})
	server := &http.Server{Handler: mux, ReadTimeout: timeout, WriteTimeout: timeout, ConnContext: conns.Context, ConnState: conns.State}
	_ = conns.Serve(ctx, server, conns.Listen(conns.Patient(ln, nil), limit)) // Patient passes its errors over
}

// own reports whether a name is that of a service of this host on a Unix socket, a loopback address,
// or the agent.
func own(host string, report status.Report) bool {
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
