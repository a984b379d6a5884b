package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"syscall"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/advance"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/auditlog"
	"github.com/florete/florete/providers/control"
	"github.com/florete/florete/providers/join"
)

// overForwarder is a provider that is called like any service of the cluster, by its name:
// the forwarder of this host has the caller's certificate.
type overForwarder struct {
	host, base string
	client     *http.Client
}

func newOverForwarder(t compile.Topology, host string) (overForwarder, error) {
	if _, ok := t.Services[spiffe.ControlService]; !ok {
		return overForwarder{}, fmt.Errorf("cluster %s: nobody may call its config provider: give an operator a role with the groups control-plane and control-plane-write, publish that with --via ssh, and until then add --via ssh to this command", t.Name)
	}
	id, err := spiffe.NewID(t.TrustDomain, spiffe.KindService, host, spiffe.ControlService)
	if err != nil {
		return overForwarder{}, err
	}
	d, err := spiffe.Dial(id)
	if err != nil {
		return overForwarder{}, err
	}
	return overForwarder{host, "http://" + spiffe.Render(d), &http.Client{Transport: &http.Transport{
		Proxy:                 socksListener,
		DialContext:           (&net.Dialer{Timeout: 10 * time.Second}).DialContext,
		ResponseHeaderTimeout: 2 * time.Minute,
	}}}, nil
}

// socksListener is an http.Transport's Proxy: the SOCKS5 listener of the forwarder that HTTP_PROXY
// names. Any other proxy would see requests in clear, and lead to no host of the cluster.
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

func (o overForwarder) Versions(ctx context.Context) ([]archive.Version, error) {
	var v control.Versions
	err := o.get(ctx, "/v1/versions", &v)
	return v.Versions, err
}

func (o overForwarder) Reports(ctx context.Context) (map[string]hostreport.Kept, error) {
	all := map[string]hostreport.Kept{}
	for after := ""; ; {
		var page control.Hosts
		if err := o.get(ctx, "/v1/hosts?after="+url.QueryEscape(after), &page); err != nil {
			return nil, err
		}
		for _, h := range page.Hosts {
			all[h.Host] = h.Kept
		}
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

func (o overForwarder) Audit(ctx context.Context, since auditlog.Moment) iter.Seq2[auditlog.Row, error] {
	return auditlog.Read(o.host, func(after string) (rows []json.RawMessage, next string, err error) {
		var page struct {
			Rows []json.RawMessage
			Next string
		}
		err = o.get(ctx, "/v1/audit?"+url.Values{"since": {since.String()}, "after": {after}}.Encode(), &page)
		return page.Rows, page.Next, err
	})
}

func (o overForwarder) Export(ctx context.Context, serial int64, w io.Writer) error {
	body, err := o.request(ctx, http.MethodGet, fmt.Sprintf("/v1/versions/%d", serial), nil)
	if err != nil {
		return err
	}
	defer body.Close()
	_, err = io.Copy(w, body)
	return err
}

func (o overForwarder) Import(ctx context.Context, r io.Reader, how importing) (string, error) {
	path := "/v1/publish"
	switch {
	case how.back != 0:
		path = fmt.Sprintf("/v1/rollback/%d", how.back)
	case how.atOnce:
		path += "?atOnce=true"
	}
	body, err := o.request(ctx, http.MethodPost, path, r)
	if err != nil {
		return "", err
	}
	defer body.Close()
	var p control.Published
	if err := json.NewDecoder(body).Decode(&p); err != nil {
		return "", fmt.Errorf("%s%s: %w", o.base, path, err)
	}
	report := fmt.Sprintf("%s: %s", o.host, archive.Report(p.Version, p.Changed))
	if p.Rollout != nil {
		report += fmt.Sprintf("\n%s: %s: florctl rollout status", o.host, advance.Describe(*p.Rollout))
	}
	return report, nil
}

func (o overForwarder) Rollout(ctx context.Context, act advance.Act) (s advance.Status, err error) {
	if act != "" {
		body, err := o.request(ctx, http.MethodPost, "/v1/rollout/"+string(act), nil)
		if err != nil {
			return s, err
		}
		body.Close()
	}
	err = o.get(ctx, "/v1/rollout", &s)
	return s, err
}

func (o overForwarder) Revocations(ctx context.Context) (r archive.Revocations, err error) {
	err = o.get(ctx, "/v1/revocations", &r)
	return r, err
}

func (o overForwarder) SetRevocations(ctx context.Context, s trust.SignedRevocations) error {
	list, err := json.Marshal(s)
	if err != nil {
		return err
	}
	body, err := o.request(ctx, http.MethodPost, "/v1/revocations", bytes.NewReader(list))
	if err != nil {
		return err
	}
	return body.Close()
}

func (o overForwarder) Rotate(ctx context.Context, host, need string) (string, error) {
	order, err := json.Marshal(control.Rotate{Host: host, Need: need})
	if err != nil {
		return "", err
	}
	body, err := o.request(ctx, http.MethodPost, "/v1/rotate", bytes.NewReader(order))
	if err != nil {
		return "", err
	}
	defer body.Close()
	var ordered control.Ordered
	if err := json.NewDecoder(body).Decode(&ordered); err != nil {
		return "", fmt.Errorf("%s/v1/rotate: %w", o.base, err)
	}
	return fmt.Sprintf("%s: rotation %d of need %s is ordered, with the answer to its next report", host, ordered.Rotation, need), nil
}

func (o overForwarder) Host() string { return o.host }

func (o overForwarder) Tokens(ctx context.Context) ([]join.Token, error) {
	var t control.Tokens
	err := o.get(ctx, "/v1/tokens", &t)
	return t.Tokens, err
}

func (o overForwarder) CreateToken(ctx context.Context, t join.Token) (made join.Token, err error) {
	return made, o.post(ctx, "/v1/tokens", t, &made)
}

func (o overForwarder) RevokeToken(ctx context.Context, id string) (t join.Token, err error) {
	return t, o.post(ctx, "/v1/tokens/"+url.PathEscape(id)+"/revoke", nil, &t)
}

func (o overForwarder) Joins(ctx context.Context) ([]join.Request, error) {
	var j control.Joins
	err := o.get(ctx, "/v1/joins", &j)
	return j.Joins, err
}

func (o overForwarder) DecideJoin(ctx context.Context, host string, d control.Decision) (r join.Request, err error) {
	return r, o.post(ctx, "/v1/joins/"+url.PathEscape(host), d, &r)
}

func (o overForwarder) Issued(ctx context.Context, i join.Issued) error {
	return o.post(ctx, "/v1/issued", i, &i)
}

// post sends what an act is about, nil for nothing, and decodes what came of it.
func (o overForwarder) post(ctx context.Context, path string, about, v any) error {
	var in io.Reader
	if about != nil {
		b, err := json.Marshal(about)
		if err != nil {
			return err
		}
		in = bytes.NewReader(b)
	}
	body, err := o.request(ctx, http.MethodPost, path, in)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(v); err != nil {
		return fmt.Errorf("%s%s: %w", o.base, path, err)
	}
	return nil
}

func (o overForwarder) get(ctx context.Context, path string, v any) error {
	body, err := o.request(ctx, http.MethodGet, path, nil)
	if err != nil {
		return err
	}
	defer body.Close()
	if err := json.NewDecoder(body).Decode(v); err != nil {
		return fmt.Errorf("%s%s: %w", o.base, path, err)
	}
	return nil
}

// request returns the body of an answer. The error is the provider's refusal, or has what
// is missing on the way there.
func (o overForwarder) request(ctx context.Context, method, path string, body io.Reader) (io.ReadCloser, error) {
	r, err := http.NewRequestWithContext(ctx, method, o.base+path, body)
	if err != nil {
		return nil, err
	}
	answer, err := o.client.Do(r)
	if err != nil {
		return nil, o.unreachable(err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	var refusal hostapi.Error
	if err := json.NewDecoder(io.LimitReader(answer.Body, 1<<16)).Decode(&refusal); err != nil || refusal.Kind == "" {
		return nil, fmt.Errorf("%s%s: answered with %s, want that of a config provider: call it through the forwarder of this host", o.base, path, answer.Status)
	}
	return nil, fmt.Errorf("%s: %s", o.host, terminal.Text(refusal.Message))
}

// unreachable adds what to do about a connection that there is not.
func (o overForwarder) unreachable(err error) error {
	var unknown *net.DNSError
	var remedy string
	switch {
	case errors.As(err, &unknown):
		remedy = "this host does not know the name: run florctl on a host of the cluster, under an account that acts as an operator there (flor hosts-file), set HTTP_PROXY to its SOCKS5 listener (socks5h://127.…:1080), or use --via ssh"
	case errors.Is(err, syscall.ECONNREFUSED):
		remedy = "the forwarder of this host does not run: flor doctor, or use --via ssh"
	case errors.Is(err, io.EOF), errors.Is(err, syscall.ECONNRESET), errors.Is(err, io.ErrUnexpectedEOF):
		remedy = fmt.Sprintf("the forwarder closed the connection: either this account acts as nobody who may call it (florctl who-can %s), or the config provider of %s does not answer: flor status, or use --via ssh", spiffe.ControlService, o.host)
	default:
		return err
	}
	return fmt.Errorf("%w: %s", err, remedy)
}
