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

	"github.com/florete/florete/providers/serveraccount"
)

// forgejo is a connection to a Forgejo or Gitea forge through its API. It logs in as an
// administrator with a password, because a token cannot make tokens there. Tokens of these forges
// do not expire, so the provider deletes them.
type forgejo struct {
	*http.Client
	base, user, password string
}

var _ forge = (*forgejo)(nil)

func openForgejo(_ context.Context, f serveraccount.Server, password string) (forge, error) {
	if password == "" {
		return nil, errors.New("want the user's password")
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return serveraccount.Dial(ctx, f.Address) }}
	redirected := func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	host := f.Address
	if strings.HasPrefix(host, "unix:") {
		host = "forge"
	}
	return &forgejo{
		Client: &http.Client{Transport: transport, CheckRedirect: redirected},
		base:   "http://" + host + "/api/v1/", user: f.User, password: password,
	}, nil
}

func (f *forgejo) Close() error {
	f.CloseIdleConnections()
	return nil
}

// statusError is the error of a response with an unsuccessful HTTP status.
type statusError struct {
	status int
	text   string
}

func (e *statusError) Error() string { return fmt.Sprintf("%d: %s", e.status, e.text) }

// unlessStatus returns nil if err is a statusError with one of the given statuses. Otherwise it
// returns err.
func unlessStatus(err error, statuses ...int) error {
	var of *statusError
	if errors.As(err, &of) && slices.Contains(statuses, of.status) {
		return nil
	}
	return err
}

// maxAnswer is the largest response, in bytes. A page of tokens is smaller.
const maxAnswer = 1 << 20

// call sends a request to the forge. It decodes the response into answer, unless answer is nil.
func (f *forgejo) call(ctx context.Context, method string, path []string, query string, body, answer any) error {
	failed := func(err error) error {
		return serveraccount.Errorf("forge API: %s %s: %w", method, strings.Join(path, "/"), err)
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
		return failed(errors.Unwrap(err)) // error without the URL
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

// forgejoUser is an account as an administrator sees it.
type forgejoUser struct {
	ID         int64  `json:"id"`
	Email      string `json:"email"`
	Restricted bool   `json:"restricted"`
	Admin      bool   `json:"is_admin"`
	Source     int64  `json:"source_id"` // source of sign-ins; zero for a password at the forge
}

// made reports whether the provider may have made an account. The accounts that it makes are
// restricted, and have a mail address that people who register cannot confirm. Accounts of people
// who register are not restricted, unless the forge restricts all accounts.
func (u forgejoUser) made(account string) bool {
	return u.Restricted && !u.Admin && u.Source == 0 && u.Email == mailAddress(account)
}

// mailAddress returns the address of an account. No mail can be delivered to the address (RFC
// 2606).
func mailAddress(account string) string { return account + "@florete.invalid" }

func (f *forgejo) allow(ctx context.Context, name string, rights, former []right, known int64) (int64, error) {
	var u forgejoUser
	err := f.call(ctx, "GET", []string{"users", name}, "", nil, &u)
	missing := err != nil && unlessStatus(err, 404) == nil
	switch {
	case missing && len(rights) == 0:
		return 0, nil
	case missing:
		err = f.call(ctx, "POST", []string{"admin", "users"}, "", map[string]any{
			"username": name, "email": mailAddress(name), "password": rand.Text(), // a password that nobody knows
			"must_change_password": false, "restricted": true, "visibility": "private",
		}, &u)
	case err == nil && !u.made(name):
		err = f.disallow(ctx, name, distinct(slices.Concat(rights, former)))
		if err == nil && len(rights) > 0 {
			err = serveraccount.Errorf("forge: account %s is there and was not made by this provider, want it free, or restricted with the mail address %s, a local "+
				"password and no other rights: rename it, and have nobody register accounts", name, mailAddress(name))
		}
		return 0, err
	case err == nil && u.ID != known:
		err = f.takeOver(ctx, name)
	}
	if err == nil {
		err = f.disallow(ctx, name, slices.DeleteFunc(slices.Clone(former), func(r right) bool { return slices.Contains(rights, r) }))
	}
	for _, r := range rights {
		if err == nil {
			err = f.call(ctx, "PUT", collaborator(name, r), "", map[string]string{"permission": r.Access}, nil)
		}
	}
	return u.ID, err
}

// takeOver ends all ways in which other people may sign in to an account that was made under a
// state that is lost.
func (f *forgejo) takeOver(ctx context.Context, name string) error {
	err := f.call(ctx, "PATCH", []string{"admin", "users", name}, "", map[string]any{
		"source_id": 0, "login_name": name, "email": mailAddress(name), "password": rand.Text(), "must_change_password": false, "restricted": true,
	}, nil)
	for err == nil {
		var keys []struct{ ID int64 }
		err = f.call(ctx, "GET", []string{"users", name, "keys"}, "?limit=50", nil, &keys)
		if len(keys) == 0 {
			break
		}
		for _, k := range keys {
			if err == nil {
				err = f.call(ctx, "DELETE", []string{"admin", "users", name, "keys", strconv.FormatInt(k.ID, 10)}, "", nil, nil)
			}
		}
	}
	return err
}

// disallow revokes the given rights of an account. It ignores rights that the account does not
// have.
func (f *forgejo) disallow(ctx context.Context, name string, rights []right) error {
	for _, r := range rights {
		if err := unlessStatus(f.call(ctx, "DELETE", collaborator(name, r), "", nil, nil), 404, 422); err != nil {
			return err
		}
	}
	return nil
}

func collaborator(name string, r right) []string {
	owner, repository, _ := strings.Cut(r.Repository, "/")
	return []string{"repos", owner, repository, "collaborators", name}
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
		err = serveraccount.Errorf("forge API: a token without its secret")
	}
	return made.SHA1, err
}

func (f *forgejo) end(ctx context.Context, account, id string) error {
	return unlessStatus(f.call(ctx, "DELETE", []string{"users", account, "tokens", id}, "", nil, nil), 404)
}
