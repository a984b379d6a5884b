package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// pocketID is a connection to the API of Pocket ID 2.14 or newer, which allows several secrets for
// a client.
//
// The ID of a client is the name of its service, and a client is updated when it changes. The
// header X-API-Key contains the API key of an administrator.
type pocketID struct {
	url   string
	token string
}

// pocketClient is a client as it is sent to the server. The server replaces the whole client by it.
type pocketClient struct {
	ID              string   `json:"id,omitempty"`
	Name            string   `json:"name"` // at most 50 characters
	CallbackURLs    []string `json:"callbackURLs"`
	LogoutURLs      []string `json:"logoutCallbackURLs"`
	Public          bool     `json:"isPublic"`
	PKCE            bool     `json:"pkceEnabled"`
	SkipConsent     bool     `json:"skipConsent"`
	GroupRestricted bool     `json:"isGroupRestricted"`
}

// pocketSecret is a secret as the server lists it.
type pocketSecret struct {
	ID     string `json:"id"`
	Prefix string `json:"prefix"` // the first four characters
}

const pocketPrefix = 4

func (p pocketID) register(ctx context.Context, name, mark string, want Request, former []registered) (made, error) {
	c, _ := p.pending(name, mark)
	err := p.update(ctx, name, c, want)
	var refused *refusedError
	if errors.As(err, &refused) && refused.status == http.StatusNotFound {
		if _, err = p.call(ctx, http.MethodPost, "/oidc/clients", newPocketClient(name, name, want)); err == nil {
			err = p.allow(ctx, name, want)
		}
	}
	if err != nil || want.Public {
		return c, err
	}
	secrets := "/oidc/clients/" + url.PathEscape(name) + "/secrets"
	b, err := p.call(ctx, http.MethodGet, secrets, nil)
	if err != nil {
		return c, err
	}
	var listed []pocketSecret
	if err := json.Unmarshal(b, &listed); err != nil {
		return c, errors.New("its answer is no list of secrets")
	}
	for _, s := range listed {
		// A secret that is not stored here belongs to a process that ended before it stored it.
		kept := slices.ContainsFunc(former, func(f registered) bool { return strings.HasSuffix(f.URI, "/"+s.ID) })
		if s.Prefix != mark[:pocketPrefix] || kept {
			continue
		}
		if _, err := p.call(ctx, http.MethodDelete, secrets+"/"+url.PathEscape(s.ID), nil); err != nil {
			return c, err
		}
	}
	c.Secret = mark[:pocketPrefix] + random()
	if b, err = p.call(ctx, http.MethodPost, secrets, map[string]string{"secret": c.Secret}); err != nil {
		return c, err
	}
	var fresh pocketSecret
	if err := json.Unmarshal(b, &fresh); err != nil || fresh.ID == "" {
		return c, errors.New("its answer is no secret of a client")
	}
	c.URI = p.url + "/api" + secrets + "/" + url.PathEscape(fresh.ID)
	return c, nil
}

func (p pocketID) update(ctx context.Context, name string, _ made, want Request) error {
	if _, err := p.call(ctx, http.MethodPut, "/oidc/clients/"+url.PathEscape(name), newPocketClient("", name, want)); err != nil {
		return err
	}
	return p.allow(ctx, name, want)
}

// allow sets the groups of a client by the IDs that the server has for them. Before this call,
// nobody may sign in at a client that has groups.
func (p pocketID) allow(ctx context.Context, name string, want Request) error {
	if len(want.AllowedGroups) == 0 {
		return nil // a client without restriction has lost those it had
	}
	ids := map[string]string{}
	for page, pages := 1, 1; page <= pages; page++ {
		b, err := p.call(ctx, http.MethodGet, fmt.Sprintf("/user-groups?pagination%%5Bpage%%5D=%d&pagination%%5Blimit%%5D=100", page), nil)
		if err != nil {
			return err
		}
		var listed struct {
			Data []struct {
				ID   string `json:"id"`
				Name string `json:"name"`
			} `json:"data"`
			Pagination struct {
				TotalPages int `json:"totalPages"`
			} `json:"pagination"`
		}
		if err := json.Unmarshal(b, &listed); err != nil {
			return errors.New("its answer is no list of groups")
		}
		for _, g := range listed.Data {
			ids[g.Name] = g.ID
		}
		pages = listed.Pagination.TotalPages
	}
	var groups []string
	for _, g := range want.AllowedGroups {
		if ids[g] == "" {
			return errNoGroup(g, name)
		}
		groups = append(groups, ids[g])
	}
	_, err := p.call(ctx, http.MethodPut, "/oidc/clients/"+url.PathEscape(name)+"/allowed-user-groups", map[string][]string{"userGroupIds": groups})
	return err
}

func (p pocketID) pending(name, _ string) (made, bool) {
	return made{ID: name, URI: p.url + "/api/oidc/clients/" + url.PathEscape(name), Registrar: registrarPocketID}, true
}

// end deletes a secret of a client. If whole is true, it deletes the client. It succeeds if the
// secret or client does not exist.
func (p pocketID) end(ctx context.Context, c made, whole bool) error {
	client, _, _ := strings.Cut(c.URI, "/secrets/")
	at, ok := strings.CutPrefix(c.URI, p.url+"/api")
	if !ok {
		return &refusedError{http.StatusNotImplemented, "it is at another address: " + client}
	}
	if whole {
		at = strings.TrimPrefix(client, p.url+"/api")
	} else if at == strings.TrimPrefix(client, p.url+"/api") {
		return nil // a public client has no secret to end
	}
	_, err := p.call(ctx, http.MethodDelete, at, nil)
	var refused *refusedError
	if errors.As(err, &refused) && refused.status == http.StatusNotFound {
		return nil
	}
	return err
}

func newPocketClient(id, name string, want Request) pocketClient {
	return pocketClient{
		ID: id, Name: name[:min(len(name), 50)], CallbackURLs: want.RedirectURIs, LogoutURLs: want.PostLogoutRedirectURIs,
		Public: want.Public, PKCE: want.Public, SkipConsent: true, GroupRestricted: len(want.AllowedGroups) > 0,
	}
}

func (p pocketID) call(ctx context.Context, method, path string, content any) ([]byte, error) {
	return manage(ctx, method, p.url+"/api"+path, http.Header{"X-Api-Key": {p.token}}, content)
}
