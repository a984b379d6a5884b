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
	// PageConnections is the largest number of open connections to web pages. The limit ensures
	// that enough connections remain for hosts.
	PageConnections = 1024
	maxPageHeader   = 32 << 10
)

// Pages is a web server for the public pages of a provider, such as its OpenID Connect discovery
// page. It serves plain HTTP at a loopback address. The forwarder makes the pages available to
// other hosts, encrypted and with an access list. All fields are required.
type Pages struct {
	Name    string // name of the kind
	Listen  string // a loopback host:port
	Secret  string // reason for loopback, "passwords would cross the network in clear"
	Handler http.Handler
	Ready   func() // called when the pages are served
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

// ServePages serves the web pages of a provider until ctx ends.
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
	// All callers have the forwarder's address, so a limit for each address would limit all of
	// them.
	limit := conns.Limit{Total: PageConnections, Prefix: PageConnections}
	if err := conns.Serve(ctx, web, conns.Listen(conns.Patient(listener, c.Logger), limit)); err != nil {
		return fmt.Errorf("%s listen: %w", c.Name, err)
	}
	return nil
}

// ParseIssuer parses the issuer URL of OpenID Connect tokens. The URL must have the form
// http(s)://host or http(s)://host:port, without a path or a final slash, because clients compare
// issuers byte for byte (OpenID Connect Discovery 1.0 section 4.3).
func ParseIssuer(issuer string) (*url.URL, error) {
	u, err := url.Parse(issuer)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || issuer != u.Scheme+"://"+u.Host || u.Host == "" {
		return nil, fmt.Errorf("issuer %q: want http(s)://<host>[:<port>] and nothing after", issuer)
	}
	return u, nil
}

// AtIssuer reports whether host, the Host header of a request, is the host and port of the issuer.
// A default port may be omitted. A server should refuse all other requests, because an attacker can
// cause them by DNS rebinding.
func AtIssuer(issuer *url.URL, host string) bool {
	port := map[string]string{"http": ":80", "https": ":443"}[issuer.Scheme]
	return strings.EqualFold(strings.TrimSuffix(host, port), strings.TrimSuffix(issuer.Host, port))
}
