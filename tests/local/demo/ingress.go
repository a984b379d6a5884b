package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"

	"github.com/florete/florete/tests/kit"
)

// strangers calls the public services from outside the cluster, through a reverse proxy in place of
// the ingress on the host raishan. The proxy knows the TLS name and the address of each service. It
// selects the service only by the name in the ClientHello (RFC 6066).
func (s *demo) strangers(ctx context.Context) error {
	s.heading("strangers come to the ingress on raishan")
	names := map[string]string{}
	for _, r := range s.hosts["raishan"].Manifest.Forwarder.Reach {
		if r.TLSName != "" {
			names[r.TLSName] = r.Listen.String()
		}
	}
	roots, certificates := publicCertificates(names)
	l, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{MinVersion: tls.VersionTLS13, GetCertificate: func(h *tls.ClientHelloInfo) (*tls.Certificate, error) {
		if c := certificates[h.ServerName]; c != nil {
			return c, nil
		}
		return nil, fmt.Errorf("no public name %q", h.ServerName)
	}})
	if err != nil {
		return err
	}
	proxy := &http.Server{ErrorLog: log.New(io.Discard, "", 0), Handler: &httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) {
		r.SetURL(&url.URL{Scheme: "http", Host: names[r.In.TLS.ServerName]})
	}}}
	go func() { _ = proxy.Serve(l) }()
	defer proxy.Close()

	stranger := &http.Client{Timeout: kit.Patience, Transport: &http.Transport{
		TLSClientConfig: &tls.Config{RootCAs: roots},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, l.Addr().String())
		},
	}}
	defer stranger.CloseIdleConnections()
	get := func(name string) (string, error) {
		res, err := stranger.Get("https://" + name + "/")
		if err != nil {
			return "", err
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if res.StatusCode != http.StatusOK {
			err = errors.Join(err, errors.New(res.Status))
		}
		return string(b), err
	}
	s.reaches(ctx, "a stranger to outline.example.org", "outline", func() (string, error) { return get("outline.example.org") })
	_, err = get("wiki.example.org")
	s.refused("a stranger to wiki, which is not public", err, "tls")
	return nil
}

// publicCertificates creates certificates for the public names, which a public CA would otherwise
// issue.
func publicCertificates(names map[string]string) (*x509.CertPool, map[string]*tls.Certificate) {
	roots, all := x509.NewCertPool(), map[string]*tls.Certificate{}
	for name := range names {
		key := kit.NewKey()
		leaf := kit.SelfSigned(&x509.Certificate{DNSNames: []string{name}}, key)
		roots.AddCert(leaf)
		all[name] = &tls.Certificate{Certificate: [][]byte{leaf.Raw}, PrivateKey: key}
	}
	return roots, all
}
