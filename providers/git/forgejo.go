package git

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/florete/florete/providers/account"
)

// forgejo is a Forgejo or Gitea, by its API, as an administrator with a password: no token
// makes tokens there. Theirs do not end, so the provider ends them.
type forgejo struct {
	*http.Client
	base, user, password string
}

var _ forge = (*forgejo)(nil)

func openForgejo(_ context.Context, f account.Server, password string) (forge, error) {
	if password == "" {
		return nil, errors.New("want the user's password")
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return account.Dial(ctx, f.Address) }}
	redirected := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &forgejo{
		Client: &http.Client{Transport: transport, CheckRedirect: redirected},
		base:   "http://" + f.Address + "/api/v1/", user: f.User, password: password,
	}, nil
}

func (f *forgejo) Close() error {
	f.CloseIdleConnections()
	return nil
}

// statusError is an answer that is no success.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d: %s", e.status, e.text) }

// unlessStatus has an answer of these be none.
func unlessStatus(err error, statuses ...int) error {
	var of *statusError
	if errors.As(err, &of) && slices.Contains(statuses, of.status) {
		return nil
	}
	return err
}

// maxAnswer is more than a page of tokens takes.
const maxAnswer = 1 << 20

// call requests, and decodes the answer into one that is wanted.
func (f *forgejo) call(ctx context.Context, method string, path []string, query string, body, answer any) error {
	failed := func(err error) error {
		return account.Errorf("forge API: %s %s: %w", method, strings.Join(path, "/"), err)
	}
	var b []byte
	if body != nil {
		b, _ = json.Marshal(body) // strings and booleans
	}
	escaped := make([]string, len(path))
	for i, p := range path {
		escaped[i] = url.PathEscape(p)
	}
	req, err := http.NewRequestWithContext(ctx, method, f.base+strings.Join(escaped, "/")+query, bytes.NewReader(b))
	if err != nil {
		return err
	}
	req.SetBasicAuth(f.user, f.password)
	req.Header.Set("Content-Type", "application/json")
	resp, err := f.Do(req)
	if err != nil {
		return failed(errors.Unwrap(err)) // without the URL
	}
	defer resp.Body.Close()
	b, err = io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return failed(err)
	}
	if resp.StatusCode/100 != 2 {
		var of struct{ Message string }
		_ = json.Unmarshal(b, &of)
		return failed(&statusError{resp.StatusCode, of.Message})
	}
	if answer == nil {
		return nil
	}
	if err := json.Unmarshal(b, answer); err != nil {
		return failed(errors.New("its answer is no JSON of this API"))
	}
	return nil
}

func (f *forgejo) allow(ctx context.Context, account string, rights, former []right) error {
	err := f.call(ctx, "GET", []string{"users", account}, "", nil, nil)
	if err != nil && unlessStatus(err, 404) == nil {
		err = f.call(ctx, "POST", []string{"admin", "users"}, "", map[string]any{
			"username": account, "email": account + "@florete.invalid", "password": rand.Text(), // which nobody knows
			"must_change_password": false, "restricted": true, "visibility": "private",
		}, nil)
	}
	at := func(r right) []string {
		owner, name, _ := strings.Cut(r.Repository, "/")
		return []string{"repos", owner, name, "collaborators", account}
	}
	for _, r := range former {
		if err == nil && !slices.Contains(rights, r) {
			err = unlessStatus(f.call(ctx, "DELETE", at(r), "", nil, nil), 404, 422)
		}
	}
	for _, r := range rights {
		if err == nil {
			err = f.call(ctx, "PUT", at(r), "", map[string]string{"permission": r.Access}, nil)
		}
	}
	return err
}

func (f *forgejo) tokens(ctx context.Context, account string) (map[string]string, error) {
	of := map[string]string{}
	for page := 1; ; page++ {
		var all []struct {
			ID   int64
			Name string
		}
		err := f.call(ctx, "GET", []string{"users", account, "tokens"}, "?limit=50&page="+strconv.Itoa(page), nil, &all)
		if err != nil {
			return of, unlessStatus(err, 404)
		}
		known := len(of)
		for _, t := range all {
			of[strconv.FormatInt(t.ID, 10)] = t.Name
		}
		if len(of) == known {
			return of, nil
		}
	}
}

func (f *forgejo) create(ctx context.Context, user, name, access string, _ time.Duration) (string, error) {
	var made struct{ SHA1 string }
	err := f.call(ctx, "POST", []string{"users", user, "tokens"}, "", map[string]any{"name": name, "scopes": []string{access + ":repository"}}, &made)
	if err == nil && made.SHA1 == "" {
		err = account.Errorf("forge API: a token without its secret")
	}
	return made.SHA1, err
}

func (f *forgejo) end(ctx context.Context, account, id string) error {
	return unlessStatus(f.call(ctx, "DELETE", []string{"users", account, "tokens", id}, "", nil, nil), 404)
}
