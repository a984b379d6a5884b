package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// kanidm is a connection to the API of Kanidm 1.11 or newer. It uses an API token of a service
// account.
//
// A client has one secret, which the server makes. A new secret therefore needs another client. For
// all other changes, the client is updated.
type kanidm struct{ url, token string }

// kanidmEntry is an entry of the server. It contains the values of each attribute.
type kanidmEntry struct {
	Attrs map[string][]string `json:"attrs"`
}

const (
	kanidmEveryone = "idm_all_persons" // the group of all people
	kanidmScopes   = "oauth2_rs_scope_map"
	kanidmClaims   = "oauth2_rs_claim_map"
	kanidmName     = 64 // characters of a name
)

func (k kanidm) register(ctx context.Context, name, mark string, want Request, _ []registered) (made, error) {
	c, _ := k.pending(name, mark)
	kind := "_basic"
	if want.Public {
		kind = "_public"
	}
	entry := newKanidmEntry(name, want)
	entry.Attrs["name"] = []string{c.ID}
	_, err := k.call(ctx, http.MethodPost, kind, entry)
	var refused *refusedError
	if errors.As(err, &refused) && refused.status == http.StatusConflict { // of a process that ended before it kept it
		if _, err = k.call(ctx, http.MethodDelete, c.ID, nil); err == nil {
			_, err = k.call(ctx, http.MethodPost, kind, entry)
		}
	}
	if err == nil {
		err = k.allow(ctx, c.ID, want)
	}
	if err != nil || want.Public {
		return c, err
	}
	b, err := k.call(ctx, http.MethodGet, c.ID+"/_basic_secret", nil)
	if err != nil {
		return c, err
	}
	if err := json.Unmarshal(b, &c.Secret); err != nil || c.Secret == "" {
		return c, errors.New("its answer is no secret of a client")
	}
	return c, nil
}

// update updates a client. It sets the groups first, so that groups that lose access never have the
// new settings.
func (k kanidm) update(ctx context.Context, name string, c made, want Request) error {
	if err := k.allow(ctx, c.ID, want); err != nil {
		return err
	}
	_, err := k.call(ctx, http.MethodPatch, c.ID, newKanidmEntry(name, want))
	return err
}

// allow sets the groups that may sign in at a client, and the scopes of these groups. Before this
// call, nobody may sign in.
func (k kanidm) allow(ctx context.Context, id string, want Request) error {
	b, err := k.call(ctx, http.MethodGet, id, nil)
	if err != nil {
		return err
	}
	var has *kanidmEntry
	if err := json.Unmarshal(b, &has); err != nil {
		return errors.New("its answer is no entry of a client")
	}
	if has == nil {
		return &refusedError{http.StatusNotFound, "it has no client " + id}
	}
	if err := k.claim(ctx, id, has.Attrs[kanidmClaims], want); err != nil {
		return err
	}
	groups, allowed := want.AllowedGroups, want.Scopes
	if len(groups) == 0 {
		groups = []string{kanidmEveryone}
	}
	if allowed == nil {
		allowed = scopes
	}
	for _, m := range has.Attrs[kanidmScopes] {
		group, _, _ := strings.Cut(m, ": ") // "writers@idm.example.org: {\"email\", \"openid\"}"
		short, _, _ := strings.Cut(group, "@")
		if slices.Contains(groups, group) || slices.Contains(groups, short) {
			continue
		}
		if _, err := k.call(ctx, http.MethodDelete, id+"/_scopemap/"+url.PathEscape(group), nil); err != nil {
			return err
		}
	}
	for _, g := range groups {
		if _, err := k.call(ctx, http.MethodPost, id+"/_scopemap/"+url.PathEscape(g), allowed); err != nil {
			var refused *refusedError
			if errors.As(err, &refused) && refused.status == http.StatusNotFound {
				return errNoGroup(g, id)
			}
			return err
		}
	}
	return nil
}

// claim sets the claims that the server makes from groups. It removes former ones first. The list
// has contains the former ones as the server shows them: roles: writers@idm.example.org "\"editor\"".
func (k kanidm) claim(ctx context.Context, id string, has []string, want Request) error {
	values := want.kanidmClaims()
	for _, m := range has {
		claim, rest, _ := strings.Cut(m, ": ")
		group, _, _ := strings.Cut(rest, " ")
		short, _, _ := strings.Cut(group, "@")
		if values[claim][group] != nil || values[claim][short] != nil {
			continue
		}
		if _, err := k.call(ctx, http.MethodDelete, id+"/_claimmap/"+url.PathEscape(claim)+"/"+url.PathEscape(group), nil); err != nil {
			return err
		}
	}
	for _, claim := range slices.Sorted(maps.Keys(values)) {
		at := id + "/_claimmap/" + url.PathEscape(claim)
		for _, group := range slices.Sorted(maps.Keys(values[claim])) {
			if _, err := k.call(ctx, http.MethodPost, at+"/"+url.PathEscape(group), values[claim][group]); err != nil {
				var refused *refusedError
				if errors.As(err, &refused) && refused.status == http.StatusNotFound {
					return fmt.Errorf("it has no group %q, of groups of %s: make it there, or take it out", group, id)
				}
				return err
			}
		}
		if _, err := k.call(ctx, http.MethodPost, at, "array"); err != nil {
			return err
		}
	}
	return nil
}

// kanidmClaims returns the values of claims, by claim and by group of the server.
func (r Request) kanidmClaims() map[string]map[string][]string {
	names := map[string][]string{}
	for _, name := range slices.Sorted(maps.Keys(r.Groups)) {
		for _, group := range r.Groups[name] {
			names[group] = append(names[group], name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	all := map[string]map[string][]string{"groups": names}
	for claim := range r.Claims {
		all[claim] = names // from groups, or the policy would be refused
	}
	return all
}

// validKanidm returns an error if Kanidm cannot make the claims and groups of a client. Kanidm
// writes all groups of a person into the claim groups if a client may request that scope.
func validKanidm(r Request) error {
	for claim, source := range r.Claims {
		if source != "groups" || len(r.Groups) == 0 {
			return fmt.Errorf("claims: %q: Kanidm makes claims from groups alone", claim)
		}
	}
	if len(r.Groups) > 0 && (r.Scopes == nil || slices.Contains(r.Scopes, "groups")) {
		return errors.New("groups: want scopes without groups, to which Kanidm adds all groups of a person")
	}
	return nil
}

// pending returns a client that is not registered yet. Its name has at most 64 characters and
// begins with a letter.
func (k kanidm) pending(name, mark string) (made, bool) {
	service, _, _ := strings.Cut(name, ".")
	mark = mark[:min(len(mark), 12)]
	id := "florete-" + service
	id = id[:min(len(id), kanidmName-1-len(mark))] + "-" + mark
	return made{ID: id, URI: k.url + "/v1/oauth2/" + id, Registrar: registrarKanidm, Issuer: "/oauth2/openid/" + id}, true
}

// end deletes a client. It succeeds if the client does not exist.
func (k kanidm) end(ctx context.Context, c made, _ bool) error {
	if c.URI != k.url+"/v1/oauth2/"+c.ID {
		return &refusedError{http.StatusNotImplemented, "it is at another address: " + c.URI}
	}
	_, err := k.call(ctx, http.MethodDelete, c.ID, nil)
	var refused *refusedError
	if errors.As(err, &refused) && refused.status == http.StatusNotFound {
		return nil
	}
	return err
}

func newKanidmEntry(name string, want Request) kanidmEntry {
	e := kanidmEntry{map[string][]string{
		"displayname":                {name},
		"oauth2_rs_origin":           want.RedirectURIs,
		"oauth2_rs_origin_landing":   {landing(want.RedirectURIs[0])},
		"oauth2_strict_redirect_uri": {"true"},
	}}
	if !want.Public { // it may leave PKCE out, as with us
		e.Attrs["oauth2_allow_insecure_client_disable_pkce"] = []string{"true"}
	}
	return e
}

// landing returns the address of the page to which the issuer sends people who select the service.
func landing(callback string) string {
	u, err := url.Parse(callback)
	if err != nil {
		panic(err) // decode let no other in
	}
	return u.Scheme + "://" + u.Host + "/"
}

func (k kanidm) call(ctx context.Context, method, path string, content any) ([]byte, error) {
	return manage(ctx, method, k.url+"/v1/oauth2/"+path, bearer(k.token), content)
}
