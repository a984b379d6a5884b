package token

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/httpreply"
	"github.com/florete/florete/providers/announced"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// These are values that RFC 8693 defines for requests to exchange a token.
const (
	GrantType       = "urn:ietf:params:oauth:grant-type:token-exchange"
	TypeAccessToken = "urn:ietf:params:oauth:token-type:access_token"
	TypeIDToken     = "urn:ietf:params:oauth:token-type:id_token"
	TypeJWT         = "urn:ietf:params:oauth:token-type:jwt"
)

// Exchanged is the successful answer to a token exchange (RFC 8693 section 2.2.1).
type Exchanged struct {
	AccessToken     string `json:"access_token"`
	IssuedTokenType string `json:"issued_token_type"`
	TokenType       string `json:"token_type"`
	ExpiresIn       int64  `json:"expires_in"`
	Scope           string `json:"scope"`
}

// Refused is the error answer to a token exchange (RFC 6749 section 5.2).
type Refused struct {
	Error       string `json:"error"`
	Description string `json:"error_description"`
}

// These are codes in the audit log for refused exchanges, in addition to the codes that hosts
// receive.
var (
	codeGrantType = hostapi.Code{Name: "unsupported-grant-type", Class: hostapi.Invalid}
	codeTenant    = hostapi.Code{Name: "unknown-tenant", Class: hostapi.Invalid}
)

const maxForm = 64 << 10

// exchange handles a token exchange.
func (t *Tokens) exchange(w http.ResponseWriter, r *http.Request) {
	row := t.refusals().Row(r)
	answer, err := t.exchanged(w, r, &row)
	if err == nil {
		respond(w, http.StatusOK, "no-store", answer)
		return
	}
	status, refused := asOAuth(t.refusals().Refuse(w, r, row, err))
	respond(w, status, "no-store", refused)
}

func (t *Tokens) refusals() announced.Refusals {
	return announced.Refusals{Kind: Name, Audit: t.Audit, Logger: t.Logger}
}

// asOAuth returns the status and OAuth error of a refusal.
func asOAuth(e *hostapi.Error) (int, Refused) {
	name, status := "invalid_request", http.StatusBadRequest
	switch {
	case e.Code == codeGrantType.Name:
		name = "unsupported_grant_type"
	case e.Code == codeTenant.Name:
		status = http.StatusNotFound
	case e.Kind == hostapi.Denied:
		name, status = "access_denied", e.Status()
	case e.Kind == hostapi.Transient:
		name, status = "temporarily_unavailable", e.Status()
	}
	return status, Refused{name, e.Message}
}

func (t *Tokens) exchanged(w http.ResponseWriter, r *http.Request, row *server.Row) (Exchanged, error) {
	f, err := readForm(w, r)
	if err != nil {
		return Exchanged{}, err
	}
	for n := range store.Attempts {
		answer, err := t.decide(r.Context(), r.PathValue("tenant"), f, announced.From(r.Context()), row, n > 0)
		if !errors.Is(err, store.ErrConflict) {
			return answer, err
		}
		if err := t.Policies.Refresh(r.Context()); err != nil {
			return Exchanged{}, err
		}
	}
	return Exchanged{}, hostapi.Errorf(hostapi.CodeBusy, "others change the same at the same time").After(time.Second)
}

// decide issues a token. It writes the audit row in the transaction of the changes on which the
// token depends.
func (t *Tokens) decide(ctx context.Context, name string, f form, caller announced.Caller, row *server.Row, again bool) (Exchanged, error) {
	p, now := t.Policy(), time.Now()
	if p == nil || p.tenants[name] == nil {
		return Exchanged{}, hostapi.Errorf(codeTenant, "no tenant %.80q here", name)
	}
	fresh, err := t.Policies.Fresh(ctx)
	if err != nil {
		return Exchanged{}, err
	}
	tenant, revoked := p.tenants[name], t.Policies.Revoked()
	row.Detail = map[string]string{"tenant": name}
	s := subject{caller.ID.String(), []string{caller.ID.String()}, "svid"}
	if f.token != "" {
		s, err = t.subjectOf(ctx, tenant, f.token, t.Policies.Current().TrustDomain, revoked, now)
	} else {
		err = hostapi.RefuseIssue(revoked.CheckIssued(caller.ID, "", now))
	}
	if err != nil {
		return Exchanged{}, err
	}
	row.Detail["subject"], row.Detail["by"] = s.sub, s.by
	ring, change, err := t.tenants.keys(tenant).Due(ctx, now, p.generation)
	if err != nil {
		return Exchanged{}, err
	}
	n, err := narrow(f.requested, f.resources)
	if err != nil {
		return Exchanged{}, malformed("%v", err)
	}
	token, err := t.issue(ctx, issuing{tenant: tenant, ring: ring, sub: s.sub, subjects: s.subjects, narrow: n, now: now, counted: again})
	if err != nil {
		return Exchanged{}, err
	}
	granted := *row
	granted.Outcome, granted.Detail = server.Granted, token.detail()
	granted.Detail["by"] = s.by
	if _, err := t.Store.Commit(ctx, store.Txn{
		If:   slices.Concat(fresh, change.If, token.If),
		Then: append(append(change.Then, token.Then...), granted.Op()),
	}); err != nil {
		return Exchanged{}, err
	}
	granted.Log(ctx, t.Logger)
	return Exchanged{token.token, TypeAccessToken, "Bearer", int64(token.until.Sub(now).Seconds()), token.scope()}, nil
}

// form contains the parameters of a request for an exchange.
type form struct {
	token                string // of the subject; empty where that is the caller
	requested, resources []string
}

// parameters lists the known parameters of a form. Requests with other parameters are refused,
// because an unknown parameter may be meant to narrow the token.
var parameters = []string{"grant_type", "subject_token", "subject_token_type", "requested_token_type", "requested", "resources"}

func readForm(w http.ResponseWriter, r *http.Request) (f form, err error) {
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";"); strings.TrimSpace(kind) != "application/x-www-form-urlencoded" {
		return f, malformed("Content-Type %.100q, want application/x-www-form-urlencoded", kind)
	}
	// Any web page can make a browser call here with its user's identity.
	if origin := r.Header.Get("Origin"); origin != "" {
		return f, hostapi.Errorf(hostapi.CodeUntrusted, "Origin %.100q: pages exchange nothing here", origin)
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxForm)
	if err := r.ParseForm(); err != nil {
		return f, malformed("body: not a form of at most %d bytes", maxForm)
	}
	if len(r.URL.RawQuery) > 0 {
		return f, malformed("the URL has parameters, want all in the body: URLs are logged")
	}
	return parseForm(r.PostForm)
}

func parseForm(v url.Values) (f form, err error) {
	for name, values := range v {
		if !slices.Contains(parameters, name) {
			return f, malformed("parameter %.80q: want only %s", name, strings.Join(parameters, ", "))
		}
		if len(values) != 1 {
			return f, malformed("parameter %s: %d times, want it once", name, len(values))
		}
	}
	if grant := v.Get("grant_type"); grant != GrantType {
		return f, hostapi.Errorf(codeGrantType, "grant_type %.100q, want %s", grant, GrantType)
	}
	if wanted := v.Get("requested_token_type"); wanted != "" && wanted != TypeAccessToken && wanted != TypeJWT {
		return f, malformed("requested_token_type %.100q, want %s", wanted, TypeAccessToken)
	}
	f.token = v.Get("subject_token")
	switch kind := v.Get("subject_token_type"); {
	case f.token == "" && kind != "":
		return f, malformed("subject_token_type without subject_token: want both, or neither for the caller's own SVID")
	case f.token != "" && kind != TypeJWT && kind != TypeIDToken && kind != TypeAccessToken:
		return f, malformed("subject_token_type %.100q, want %s or %s", kind, TypeJWT, TypeIDToken)
	}
	f.requested, f.resources = strings.Fields(v.Get("requested")), strings.Fields(v.Get("resources"))
	return f, nil
}

func respond(w http.ResponseWriter, status int, cache string, v any) {
	w.Header().Set("Cache-Control", cache)
	httpreply.JSON(w, status, v)
}

func write(w http.ResponseWriter, status int, cache string, b []byte) {
	w.Header().Set("Cache-Control", cache)
	httpreply.Encoded(w, status, b)
}
