package oidc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/florete/florete/providers/outside"
)

// endpoint is the registration endpoint of an external issuer (RFC 7591). The issuer gives each
// client an address and a token for managing it (RFC 7592).
//
// A client is registered and deleted, but never updated. An update may replace the client's token.
// If the process ended before the new token is stored, the client could no longer be updated or
// deleted. To change a client, the provider therefore registers another one, and deletes the former
// client after hosts have had time to fetch the new one.
type endpoint struct {
	url   string
	token string // the one that lets register; empty where the issuer wants none

	issuer string
}

// metadata is the registration request of a client.
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

const (
	registerTimeout = 15 * time.Second // less than a host waits
	maxRegistered   = 1 << 20
)

// registrarClient follows no redirects, so that tokens are sent only to the configured address.
var registrarClient = &http.Client{
	Timeout:       registerTimeout,
	CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
}

// refusedError is the error of a response in which the issuer refuses a request.
type refusedError struct {
	status int
	why    string
}

func (e *refusedError) Error() string { return fmt.Sprintf("status %d %s", e.status, e.why) }

func (e endpoint) register(ctx context.Context, name, mark string, want Request, _ []registered) (c made, err error) {
	b, err := manage(ctx, http.MethodPost, e.url, bearer(e.token), want.metadata(name, mark))
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(b, &c); err != nil || c.ID == "" || c.Secret == "" && !want.Public {
		return c, errors.New("its answer is no client with a secret (RFC 7591 section 3.2.1)")
	}
	return c, nil
}

func (endpoint) update(context.Context, string, made, Request) error { return errors.ErrUnsupported }

func (endpoint) pending(string, string) (made, bool) { return made{}, false }

// end deletes a client through the client's own address and token.
func (e endpoint) end(ctx context.Context, c made, _ bool) error {
	if c.URI == "" || c.Token == "" {
		return &refusedError{http.StatusNotImplemented, "it lets nobody manage clients (RFC 7592)"}
	}
	if !outside.SameOrigin(c.URI, e.url) && !outside.SameOrigin(c.URI, e.issuer) {
		return &refusedError{http.StatusNotImplemented, fmt.Sprintf("it says that clients are managed at %.200q, which is neither at the address of registration nor at the issuer's", c.URI)}
	}
	_, err := manage(ctx, http.MethodDelete, c.URI, bearer(c.Token), nil)
	return err
}

func bearer(token string) http.Header {
	if token == "" {
		return http.Header{}
	}
	return http.Header{"Authorization": {"Bearer " + token}}
}

// manage sends JSON to an issuer with an authorization header, and returns the body of the
// response.
func manage(ctx context.Context, method, url string, header http.Header, content any) ([]byte, error) {
	var body io.Reader
	if content != nil {
		b, err := json.Marshal(content)
		if err != nil {
			return nil, err
		}
		body = bytes.NewReader(b)
		header.Set("Content-Type", "application/json")
	}
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, errors.New("not an address")
	}
	req.Header = header
	resp, err := registrarClient.Do(req)
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
		if json.Unmarshal(b, &why) != nil {
			_ = json.Unmarshal(b, &why.Error) // Kanidm's are a string, or an object by name
		}
		err = &refusedError{resp.StatusCode, strings.TrimSpace(why.Error + " " + why.Description)}
	}
	return b, err
}
