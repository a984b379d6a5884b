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
	// PageConnections bounds the open connections of pages. Those of people are no reason for hosts to find no room.
	PageConnections = 1024
	maxPageHeader   = 32 << 10
)

// Pages are the web pages of a provider: plain HTTP on a loopback address, which the forwarder publishes as a
// service, with encryption and an access list. Every field is needed.
type Pages struct {
	Name    string // of the kind
	Listen  string // a loopback host:port
	Secret  string // why it must be one, "passwords would cross the network in clear"
	Handler http.Handler
	Ready   func() // called when they are served
	Logger  *slog.Logger
}

// Check refuses to listen beyond loopback.
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

// ServePages serves until ctx ends.
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

// ParseIssuer parses an issuer, which is a host and nothing after it: clients compare it byte
// for byte (OpenID Connect Discovery 1.0 section 4.3).
func ParseIssuer(issuer string) (*url.URL, error) {
	u, err := url.Parse(issuer)
	if err != nil || (u.Scheme != "http" && u.Scheme != "https") || issuer != u.Scheme+"://"+u.Host || u.Host == "" {
		return nil, fmt.Errorf("issuer %q: want http(s)://<host>[:<port>] and nothing after", issuer)
	}
	return u, nil
}

// AtIssuer tells whether an issuer has a Host. Another's name that leads here, as DNS rebinding
// makes it, is none of ours.
func AtIssuer(issuer *url.URL, host string) bool {
	port := map[string]string{"http": ":80", "https": ":443"}[issuer.Scheme]
	return strings.EqualFold(strings.TrimSuffix(host, port), strings.TrimSuffix(issuer.Host, port))
}
