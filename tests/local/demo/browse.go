package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/cookiejar"
	"net/netip"
	"net/url"
	"os/exec"
	"strings"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/tests/kit"
	"github.com/florete/florete/tests/local"
)

// socks returns the address of the SOCKS5 listener of an identity on a host.
func (s *demo) socks(host, identity string) (netip.AddrPort, error) {
	for _, l := range s.hosts[host].Manifest.Forwarder.SOCKS {
		if l.ID.Short() == identity {
			return l.Listen, nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("%s has no SOCKS5 listener for %s", host, identity)
}

// local returns the address of the local listener of a service on a host.
func (s *demo) local(host, service string) (netip.AddrPort, error) {
	for _, r := range s.hosts[host].Manifest.Forwarder.Reach {
		if r.ID.Short() == service {
			return r.Listen, nil
		}
	}
	return netip.AddrPort{}, fmt.Errorf("%s does not reach %s", host, service)
}

// through returns an HTTP client that connects to services as the given identity of a host.
func (s *demo) through(host, identity string) (*http.Client, error) {
	address, err := s.socks(host, identity)
	if err != nil {
		return nil, err
	}
	jar, err := cookiejar.New(nil)
	if err != nil {
		return nil, err
	}
	proxy := &url.URL{Scheme: "socks5h", Host: address.String()}
	return &http.Client{Jar: jar, Timeout: kit.Patience, Transport: &http.Transport{Proxy: http.ProxyURL(proxy), DisableKeepAlives: true}}, nil
}

// curl runs curl as a person would. If curl fails, its message is the error.
func (s *demo) curl(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "curl", append([]string{"--silent", "--show-error", "--fail", "--max-time", "10", "--noproxy", ""}, args...)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", errors.New(strings.TrimSpace(string(exit.Stderr)))
	}
	return string(out), err
}

func (s *demo) curlLocal(ctx context.Context, host, service string) (string, error) {
	address, err := s.local(host, service)
	if err != nil {
		return "", err
	}
	return s.curl(ctx, "http://"+address.String()+"/")
}

func (s *demo) curlSOCKS(ctx context.Context, host, identity, service string) (string, error) {
	address, err := s.socks(host, identity)
	if err != nil {
		return "", err
	}
	id, err := spiffe.NewID(kit.Domain, spiffe.KindService, "", service)
	if err != nil {
		return "", err
	}
	name, err := spiffe.Dial(id)
	if err != nil {
		return "", err
	}
	return s.curl(ctx, "--socks5-hostname", address.String(), "http://"+spiffe.Render(name)+"/")
}

// logIn opens Outline in Alice's browser and submits the login form. It returns the page that
// follows.
func (s *demo) logIn() (string, error) {
	browser, err := s.through(newcomer, "user/alice")
	if err != nil {
		return "", err
	}
	page, at, err := local.LogIn(browser, "http://outline."+kit.Domain+".rete/login", alicesMail, s.password)
	if err != nil {
		return "", err
	}
	if !strings.HasPrefix(at.Host, "outline.") {
		return "", fmt.Errorf("the login ended at %s: %.200s", at, page)
	}
	return page, nil
}
