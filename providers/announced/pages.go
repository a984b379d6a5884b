package announced

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
	"time"

	"github.com/florete/florete/internal/conns"
)

const (
	// PageConnections bounds the open connections of pages, so that people do not take the
	// connections that hosts need.
	PageConnections = 1024
	maxPageHeader   = 32 << 10
)

// Pages are the web pages of a provider: plain HTTP on a loopback address. The forwarder publishes
// them as a service, with encryption and an access list. All fields are required.
type Pages struct {
	Name    string // of the kind
	Listen  string // a loopback host:port
	Secret  string // why it must be one, "passwords would cross the network in clear"
	Handler http.Handler
	Ready   func() // called when they are served
	Logger  *slog.Logger
}

// Check returns an error unless Listen is a loopback address.
func (c Pages) Check() error {
	host, _, err := net.SplitHostPort(c.Listen)
	if err != nil {
		return fmt.Errorf("%s listen: %w", c.Name, err)
	}
	if ip, err := netip.ParseAddr(host); err != nil || !ip.IsLoopback() {
		return fmt.Errorf("%s listen %q: %s: listen on a loopback address and publish that as a service", c.Name, c.Listen, c.Secret)
	}
	return nil
}

// ServePages serves pages until ctx ends.
func ServePages(ctx context.Context, c Pages) error {
	if err := c.Check(); err != nil {
		return err
	}
	listener, err := net.Listen("tcp", c.Listen)
	if err != nil {
		return fmt.Errorf("%s listen: %w", c.Name, err)
	}
	web := &http.Server{
		Handler:           c.Handler,
		ReadHeaderTimeout: 10 * time.Second,
		ReadTimeout:       30 * time.Second,
		WriteTimeout:      30 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    maxPageHeader,
		ConnContext:       conns.Context,
		ConnState:         conns.State,
		ErrorLog:          slog.NewLogLogger(c.Logger.Handler(), slog.LevelWarn),
	}
	c.Ready()
	// They all come from the forwarder's address, which has no share of its own.
	limit := conns.Limit{Total: PageConnections, Prefix: PageConnections}
	if err := conns.Serve(ctx, web, conns.Listen(conns.Patient(listener, c.Logger), limit)); err != nil {
		return fmt.Errorf("%s listen: %w", c.Name, err)
	}
	return nil
}

// ParseIssuer parses an issuer, which must be a scheme and a host without a path. Clients compare
// issuers byte for byte (OpenID Connect Discovery 1.0 section 4.3).
func ParseIssuer(issuer string) (*url.URL, error) {
	u, err := url.Parse(issuer)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || issuer != u.Scheme+"://"+u.Host || u.Host == "" {
		return nil, fmt.Errorf("issuer %q: want http(s)://<host>[:<port>] and nothing after", issuer)
	}
	return u, nil
}

// AtIssuer reports whether a Host header is the issuer's. Another name that leads here, as in DNS
// rebinding, is not.
func AtIssuer(issuer *url.URL, host string) bool {
	port := map[string]string{"http": ":80", "https": ":443"}[issuer.Scheme]
	return strings.EqualFold(strings.TrimSuffix(host, port), strings.TrimSuffix(issuer.Host, port))
}
