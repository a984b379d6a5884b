// Package client calls the control API of a cluster's config providers for operators. It connects
// either through the forwarder of this host, where the certificate of the caller identifies the
// operator, or over SSH as root of a provider host.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/distribution"
)

// Provider is a client of the control API of one config provider.
type Provider struct {
	Host string // name of the provider's host

	base    string // prefix of URLs
	http    *http.Client
	explain func(error) error // adds a remedy to an error of the connection

	root *Root // set if the provider is called over SSH
}

// New returns a client of the config provider on a host. The argument base is the URL of that
// provider's control API, without a final slash.
func New(host, base string, c *http.Client) *Provider {
	p := &Provider{Host: host, base: base, http: c}
	p.explain = p.unreachable
	return p
}

// OverSSH reports whether the client reaches the provider over SSH, as root of the provider's host.
func (p *Provider) OverSSH() bool { return p.root != nil }

// Reach returns clients of all config providers of a cluster. The last argument is the way to
// connect to them, "forwarder" or "ssh". If the cluster has no config provider, Reach returns an
// error.
func Reach(t compile.Topology, how string) (all Providers, err error) {
	for _, host := range t.Providers[distribution.Name].Hosts {
		switch how {
		case "forwarder":
			p, err := newOverForwarder(t, host)
			if err != nil {
				return nil, err
			}
			all = append(all, p)
		case "ssh":
			all = append(all, newOverSSH(RootOf(t, host)))
		default:
			return nil, fmt.Errorf("--via %q, want forwarder or ssh", how)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("cluster %s: no host provides documents: name one in providers.config.hosts", t.Name)
	}
	return all, nil
}

// newOverForwarder returns a client that calls the provider by its name, like any service of the
// cluster. The forwarder of this host presents the caller's certificate.
func newOverForwarder(t compile.Topology, host string) (*Provider, error) {
	if _, ok := t.Services[spiffe.ControlService]; !ok {
		return nil, fmt.Errorf("cluster %s: nobody may call its config provider: give an operator a role with the groups %s and %[2]s%s, publish that with --via ssh, and until then add --via ssh to this command", t.Name, spiffe.ControlGroup, spiffe.WriteSuffix)
	}
	id, err := spiffe.NewID(t.TrustDomain, spiffe.KindService, host, spiffe.ControlService)
	if err != nil {
		return nil, err
	}
	d, err := spiffe.Dial(id)
	if err != nil {
		return nil, err
	}
	return New(host, "http://"+spiffe.Render(d), &http.Client{Transport: &http.Transport{
		Proxy:                 socksListener,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ResponseHeaderTimeout: 2 * time.Minute,
	}}), nil
}

// socksListener is the Proxy function of an http.Transport. If HTTP_PROXY names the SOCKS5 listener
// of the forwarder, socksListener returns that listener. It ignores any other proxy, because such a
// proxy would see requests in plain text and could not reach the cluster.
func socksListener(*http.Request) (*url.URL, error) {
	for _, name := range []string{"HTTP_PROXY", "http_proxy"} {
		u, err := url.Parse(os.Getenv(name))
		if err != nil || u.Scheme != "socks5" && u.Scheme != "socks5h" {
			continue
		}
		if ip, err := netip.ParseAddr(u.Hostname()); err == nil && ip.IsLoopback() {
			return u, nil
		}
	}
	return nil, nil
}

// Post sends a value as JSON in a POST request to a path of the control API, and decodes the answer
// into v. If the value is nil, the request has no body.
func (p *Provider) Post(ctx context.Context, path string, about, v any) error {
	var in io.Reader
	if about != nil {
		b, err := json.Marshal(about)
		if err != nil {
			return err
		}
		in = bytes.NewReader(b)
	}
	body, err := p.request(ctx, http.MethodPost, path, in)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(v); err != nil {
		return fmt.Errorf("%s%s: %w", p.base, path, err)
	}
	return nil
}

// Get sends a GET request to a path of the control API, and decodes the answer into v.
func (p *Provider) Get(ctx context.Context, path string, v any) error {
	body, err := p.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(v); err != nil {
		return fmt.Errorf("%s%s: %w", p.base, path, err)
	}
	return nil
}

// request sends a request and returns the body of the answer. Its error is the provider's refusal,
// or tells why the provider could not be reached.
func (p *Provider) request(ctx context.Context, method, path string, body io.Reader) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.base+path, body)
	if err != nil {
		return nil, err
	}
	answer, err := p.http.Do(r)
	if err != nil {
		return nil, p.explain(err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	var refusal hostapi.Error
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<16)).Decode(&refusal); err != nil || refusal.Kind == "" {
		return nil, fmt.Errorf("%s%s: answered with %s, want that of a config provider: call it through the forwarder of this host", p.base, path, answer.Status)
	}
	return nil, fmt.Errorf("%s: %s", p.Host, terminal.Text(refusal.Message))
}

// unreachable adds a remedy to the error of a failed connection.
func (p *Provider) unreachable(err error) error {
	var unknown *net.DNSError
	var remedy string
	switch {
	case errors.As(err, &unknown):
		remedy = "this host does not know the name: run florctl on a host of the cluster, under an account that acts as an operator there (flor hosts-file), set HTTP_PROXY to its SOCKS5 listener (socks5h://127.…:1080), or use --via ssh"
	case errors.Is(err, syscall.ECONNREFUSED):
		remedy = "the forwarder of this host does not run: flor doctor, or use --via ssh"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.ErrUnexpectedEOF):
		remedy = fmt.Sprintf("the forwarder closed the connection: either this account acts as nobody who may call it (florctl who-can %s), or the config provider of %s does not answer: flor status, or use --via ssh", spiffe.ControlService, p.Host)
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, remedy)
}
