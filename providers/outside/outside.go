// Package outside makes HTTP requests to third-party servers whose addresses the topology names. It
// makes sure that a server's answer, or the DNS records of its name, cannot lead to a place that
// only this host can reach:
//
//   - Requests and redirects go only to the origins of these addresses.
//   - An address given as an IP address is connected to as written, with its port.
//   - A name of the cluster (.rete) or "localhost" may resolve to loopback, where the forwarder
//     listens.
//   - Another name may resolve to a private network only with https: the server proves the name by
//     its certificate before it receives a request.
//   - No name may resolve to a link-local, multicast or unspecified address, nor to the metadata
//     address of clouds.
//
// The address is checked after the name was resolved, when the connection is made.
package outside

import (
	"cmp"
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/florete/florete/internal/spiffe"
)

// These constants limit the answers of third-party servers.
const (
	maxBody   = 1 << 20
	maxHeader = 16 << 10
	patience  = 10 * time.Second
)

// Config configures an HTTP client for servers that are not part of the cluster. The zero value
// trusts the root certificates of the system.
type Config struct {
	TLS *tls.Config // nil for the roots of the system

	// Anywhere also permits https requests to origins that the topology does not name. It is for
	// protocols in which a server names further origins.
	Anywhere bool

	// Timeout is the longest duration of a request. If it is zero, the timeout is 10 seconds.
	Timeout time.Duration
}

// Client returns an HTTP client that sends requests only to the origins (scheme, host and port) of
// the given URLs. If Anywhere is set, it also sends https requests to other origins.
func (c Config) Client(addresses ...string) (*http.Client, error) {
	t := &transport{anywhere: c.Anywhere, plain: dialer{}, secure: dialer{private: true}}
	for _, a := range addresses {
		u, err := url.Parse(a)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" {
			return nil, fmt.Errorf("%q: want an http(s) URL", a)
		}
		t.origins = append(t.origins, origin(u))
		_, authority, _ := strings.Cut(origin(u), "://")
		t.plain.written = append(t.plain.written, authority)
	}
	t.secure.written = t.plain.written
	config := c.TLS
	if config == nil {
		config = &tls.Config{MinVersion: tls.VersionTLS12}
	}
	via := func(d *dialer) *http.Transport {
		return &http.Transport{
			Proxy: d.proxy, DialContext: d.dial, TLSClientConfig: config, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: patience, MaxResponseHeaderBytes: maxHeader, MaxIdleConns: 4, IdleConnTimeout: time.Minute,
		}
	}
	t.http, t.https = via(&t.plain), via(&t.secure)
	c.Timeout = cmp.Or(c.Timeout, patience)
	return &http.Client{Transport: t, Timeout: c.Timeout}, nil
}

// SameOrigin reports whether two http(s) URLs have the same scheme, host and port (RFC 6454 section
// 4). It returns false if one of them is not a URL.
func SameOrigin(a, b string) bool {
	u, err := url.Parse(a)
	v, other := url.Parse(b)
	return err == nil && other == nil && u.Host != "" && origin(u) == origin(v)
}

func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

type transport struct {
	origins       []string
	anywhere      bool
	plain, secure dialer
	http, https   *http.Transport
}

// RoundTrip sends a request if its URL has a permitted origin, and otherwise returns an error. The
// same rule applies to redirects. The body of the response is cut off after maxBody bytes.
func (t *transport) RoundTrip(r *http.Request) (*http.Response, error) {
	if !slices.Contains(t.origins, origin(r.URL)) && (!t.anywhere || r.URL.Scheme != "https") {
		return nil, fmt.Errorf("a request to %.200q, want one to %s: write that address in the topology", origin(r.URL), strings.Join(t.origins, " or "))
	}
	by := t.http
	if r.URL.Scheme == "https" {
		by = t.https
	}
	resp, err := by.RoundTrip(r)
	if err == nil {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(resp.Body, maxBody), resp.Body}
	}
	return resp, err
}

// CloseIdleConnections closes idle connections. http.Client calls it if a transport implements it.
func (t *transport) CloseIdleConnections() {
	t.http.CloseIdleConnections()
	t.https.CloseIdleConnections()
}

// dialer connects to the hosts of origins, and to a proxy that the environment names.
type dialer struct {
	written []string // "host:port" of the addresses
	private bool     // names may be addresses of private networks

	mu      sync.Mutex
	proxies []string // that requests go through, which resolve names themselves
}

// proxy returns the proxy that the environment names. The operator sets the environment.
func (d *dialer) proxy(r *http.Request) (*url.URL, error) {
	u, err := http.ProxyFromEnvironment(r)
	if u != nil {
		d.mu.Lock()
		defer d.mu.Unlock()
		if host := strings.ToLower(u.Hostname()); !slices.Contains(d.proxies, host) {
			d.proxies = append(d.proxies, host)
		}
	}
	return u, err
}

func (d *dialer) dial(ctx context.Context, network, address string) (net.Conn, error) {
	address = strings.ToLower(address)
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	free := slices.Contains(d.proxies, host)
	d.mu.Unlock()
	n := net.Dialer{Timeout: patience}
	if !free {
		n.Control = func(_, at string, _ syscall.RawConn) error {
			to, err := netip.ParseAddrPort(at)
			if err != nil {
				return err
			}
			if !d.permits(host, to.Addr(), slices.Contains(d.written, address)) {
				return fmt.Errorf("%s is %s, which is no address for a server of others: write the address itself in the topology where it is right", host, to.Addr())
			}
			return nil
		}
	}
	return n.DialContext(ctx, network, address)
}

// permits reports whether the host of a request may have an IP address. The argument written is
// true if the host is connected to as written, at the port that it is written with.
func (d *dialer) permits(host string, at netip.Addr, written bool) bool {
	at = plainOf(at.WithZone(""))
	if literal, err := netip.ParseAddr(host); err == nil && written {
		return plainOf(literal.WithZone("")) == at
	}
	switch {
	case slices.ContainsFunc(never, func(p netip.Prefix) bool { return p.Contains(at) }):
		return false
	case loopback4.Contains(at) || at.IsLoopback():
		return written && (host == "localhost" || strings.HasSuffix(host, spiffe.Suffix))
	case slices.ContainsFunc(private, func(p netip.Prefix) bool { return p.Contains(at) }):
		return d.private
	}
	return true
}

// plainOf returns the IPv4 address that an IPv6 address represents by mapping (RFC 4291), by NAT64
// (RFC 6052) or by 6to4 (RFC 3056).
func plainOf(at netip.Addr) netip.Addr {
	at = at.Unmap()
	b := at.As16()
	switch {
	case nat64.Contains(at):
		return netip.AddrFrom4([4]byte(b[12:16]))
	case sixToFour.Contains(at):
		return netip.AddrFrom4([4]byte(b[2:6]))
	}
	return at
}

var (
	nat64     = netip.MustParsePrefix("64:ff9b::/96")
	sixToFour = netip.MustParsePrefix("2002::/16")
	loopback4 = netip.MustParsePrefix("127.0.0.0/8")

	// never are unspecified, link-local, multicast and reserved addresses (RFC 6890), and those
	// at which clouds have metadata outside of link-local ones.
	never = prefixes("0.0.0.0/8", "169.254.0.0/16", "224.0.0.0/4", "240.0.0.0/4", "::/128", "fe80::/10", "fec0::/10", "ff00::/8",
		"100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::/32", "fd20:ce::254/128")

	// private are addresses of private and shared networks (RFC 1918, 6598, 4193, 2544).
	private = prefixes("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "100.64.0.0/10", "fc00::/7", "192.0.0.0/24", "198.18.0.0/15")
)

func prefixes(all ...string) (p []netip.Prefix) {
	for _, a := range all {
		p = append(p, netip.MustParsePrefix(a))
	}
	return p
}
