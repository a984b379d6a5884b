package oidc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/secretfile"
)

// endpoint is where an issuer of others registers clients (RFC 7591), each of which it lets be
// managed at an address and by a token of its own (RFC 7592).
//
// A client is registered and deleted, never updated: an update may replace its token, and who
// ends before that is kept can neither update nor delete it any more. So what changes is
// another client, and the former one ends when hosts had time to fetch it.
type endpoint struct {
	url   string
	token string // file of the one that lets register, where the issuer wants one
}

// metadata is a client as it is requested.
type metadata struct {
	Name            string   `json:"client_name"`
	RedirectURIs    []string `json:"redirect_uris"`
	PostLogout      []string `json:"post_logout_redirect_uris,omitempty"`
	Scope           string   `json:"scope,omitempty"`
	GrantTypes      []string `json:"grant_types"`
	ResponseTypes   []string `json:"response_types"`
	Authenticates   string   `json:"token_endpoint_auth_method"`
	Software        string   `json:"software_id"`
	SoftwareVersion string   `json:"software_version"` // finds a client at the issuer that was not kept
}

func (r Request) metadata(name, mark string) metadata {
	m := metadata{
		Name: name, RedirectURIs: r.RedirectURIs, PostLogout: r.PostLogoutRedirectURIs, Scope: strings.Join(r.Scopes, " "),
		GrantTypes: []string{"authorization_code", "refresh_token"}, ResponseTypes: []string{"code"},
		Authenticates: "client_secret_basic", Software: "florete", SoftwareVersion: mark,
	}
	if r.Public {
		m.Authenticates = "none"
	}
	return m
}

// made is a client as the issuer answers.
type made struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
	URI    string `json:"registration_client_uri"`
	Token  string `json:"registration_access_token"`
}

const (
	registerTimeout = 15 * time.Second // less than a host waits
	maxRegistered   = 64 << 10
)

// registrar follows nothing: tokens go to the address that was given, and nowhere else.
var registrar = &http.Client{
	Timeout:       registerTimeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// refusedError is an answer of the issuer that is no success.
type refusedError struct {
	status int
	why    string
}

func (e *refusedError) Error() string { return fmt.Sprintf("status %d %s", e.status, e.why) }

func (e endpoint) register(ctx context.Context, m metadata) (c made, err error) {
	token, err := secretfile.ReadFile(e.token)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return c, err
	}
	body, err := json.Marshal(m)
	if err != nil {
		return c, err
	}
	b, err := manage(ctx, http.MethodPost, e.url, strings.TrimSpace(string(token)), body)
	if err != nil {
		return c, api.Errorf(api.Transient, api.CodeUnavailable, "registering at %s: %v", e.url, err)
	}
	if err := json.Unmarshal(b, &c); err != nil || c.ID == "" || c.Secret == "" && m.Authenticates != "none" {
		return c, api.Errorf(api.Transient, api.CodeUnavailable, "registering at %s: its answer is no client with a secret (RFC 7591 section 3.2.1)", e.url)
	}
	return c, nil
}

// end deletes a client, by what only who registered it has.
func (c made) end(ctx context.Context) error {
	if c.URI == "" || c.Token == "" {
		return &refusedError{http.StatusNotImplemented, "it lets nobody manage clients (RFC 7592)"}
	}
	_, err := manage(ctx, http.MethodDelete, c.URI, c.Token, nil)
	return err
}

func manage(ctx context.Context, method, url, token string, body []byte) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("not an address")
	}
	if body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if token != "" {
		req.Header.Set("Authorization", "Bearer "+token)
	}
	resp, err := registrar.Do(req)
	if err != nil {
		return nil, errors.Unwrap(err) // the address is named already
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(io.LimitReader(resp.Body, maxRegistered))
	if err == nil && resp.StatusCode/100 != 2 {
		var why struct {
			Error       string `json:"error"`
			Description string `json:"error_description"`
		}
		_ = json.Unmarshal(b, &why)
		err = &refusedError{resp.StatusCode, strings.TrimSpace(why.Error + " " + why.Description)}
	}
	return b, err
}
