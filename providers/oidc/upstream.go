package oidc

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	dexconn "github.com/dexidp/dex/connector"
)

// Upstream is an external OpenID Connect issuer at which people can sign in. The embedded provider
// relies on its statements about them.
type Upstream struct {
	Title    string   `json:"title"`
	Issuer   string   `json:"issuer"`
	ClientID string   `json:"clientId"` // client at this issuer, registered with <our issuer>/callback; its secret is in the file
	Scopes   []string `json:"scopes"`   // scopes to request in addition to openid
	Groups   string   `json:"groups"`   // claim with the groups; empty for none
	Roots    string   `json:"roots"`    // root certificates in PEM, in addition to those of the system
}

// upstreamConfig is the configuration with which Dex opens an upstreamConnector.
type upstreamConfig struct {
	Upstream Upstream `json:"upstream"`
	Redirect string   `json:"redirect"` // <our issuer>/callback
	Secret   string   `json:"secret"`   // path
}

// check returns an error if nobody could sign in at the upstream issuer.
func (u Upstream) check() error {
	if u.ClientID == "" || !strings.HasPrefix(u.Issuer, "http://") && !strings.HasPrefix(u.Issuer, "https://") {
		return fmt.Errorf("issuer %q, clientId %q: want an http(s) URL and an id", u.Issuer, u.ClientID)
	}
	_, err := u.httpClient()
	return err
}

// Open returns a connector, with which Dex signs people in at the external issuer. It does not
// contact the issuer, which may be unreachable at that time. It implements Dex's connector
// configuration.
func (c *upstreamConfig) Open(string, *slog.Logger) (dexconn.Connector, error) {
	return &upstreamConnector{upstreamConfig: *c, waiting: make(elsewhere, elsewhereAtOnce)}, nil
}

// upstreamConnector makes a relyingParty when somebody signs in, and again when the secret changes.
type upstreamConnector struct {
	upstreamConfig
	waiting elsewhere

	mu     sync.Mutex
	opened *relyingParty
	with   string // secret
}

func (c *upstreamConnector) open(ctx context.Context) (*relyingParty, error) {
	secret, err := readSecret(c.Secret)
	if err != nil {
		return nil, fmt.Errorf("the secret of client %s: %w", c.Upstream.ClientID, err)
	}
	c.mu.Lock()
	opened, with := c.opened, c.with
	c.mu.Unlock()
	if opened != nil && with == secret {
		return opened, nil
	}
	opened, err = within(ctx, c.waiting, func() (*relyingParty, error) {
		return newRelyingParty(context.WithoutCancel(ctx), c.Upstream, c.Redirect, secret)
	})
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.opened, c.with = opened, secret
	return opened, nil
}

// LoginURL returns the address at which a browser signs in.
func (c *upstreamConnector) LoginURL(s dexconn.Scopes, callback, state string) (string, []byte, error) {
	conn, err := c.open(context.Background())
	if err != nil {
		return "", nil, err
	}
	return conn.LoginURL(s, callback, state)
}

// HandleCallback completes a sign-in at an external issuer. It exchanges the code in the callback
// request, and returns the identity of the person who signed in.
func (c *upstreamConnector) HandleCallback(s dexconn.Scopes, data []byte, r *http.Request) (id dexconn.Identity, err error) {
	conn, err := c.open(r.Context())
	if err != nil {
		return id, err
	}
	return within(r.Context(), c.waiting, func() (dexconn.Identity, error) { return conn.HandleCallback(s, data, r) })
}

// Refresh asks the external issuer about a person again before a token is refreshed. If the issuer
// has ended the person's session, Refresh returns an error and marks the token as invalid.
func (c *upstreamConnector) Refresh(ctx context.Context, s dexconn.Scopes, id dexconn.Identity) (dexconn.Identity, error) {
	conn, err := c.open(ctx)
	if err != nil {
		return id, err
	}
	id, err = within(ctx, c.waiting, func() (dexconn.Identity, error) { return conn.Refresh(ctx, s, id) })
	if err != nil && strings.Contains(err.Error(), "invalid_grant") {
		exchangeOf(ctx).ended = "the upstream issuer ended the session"
	}
	return id, err
}
