package oidc

import (
	"context"
	"errors"
	"net/http"

	"github.com/dexidp/dex/storage"
)

// codeOutside is the audit code of a refused sign-in of a person who is in none of the client's
// groups.
const codeOutside = "outside-groups"

var errOutside = errors.New("oidc: in none of the groups that may sign in at this client")

// allowed is a storage that gives the codes and tokens of a client only to people in the client's
// groups. It checks the groups at the sign-in, when a code is exchanged, and when a token is
// refreshed. A refresh reads the groups again.
type allowed struct {
	storage.Storage
	policy func() *Policy
	tokens tokens
}

func (a allowed) UpdateAuthRequest(ctx context.Context, id string, change func(storage.AuthRequest) (storage.AuthRequest, error)) error {
	return a.Storage.UpdateAuthRequest(ctx, id, func(was storage.AuthRequest) (storage.AuthRequest, error) {
		is, err := change(was)
		if err != nil || !is.LoggedIn || a.policy().allows(is.ClientID, is.Claims.Groups) {
			return is, err
		}
		if in := signInOf(ctx); in != nil {
			in.outside, in.account = is.ClientID, is.Claims.Email
			in.instead = &instead{http.StatusForbidden, "Not for you",
				"You signed in, but are in none of the groups whose people may use this service. Whoever runs it can add you to one."}
		}
		return is, errOutside
	})
}

func (a allowed) GetAuthCode(ctx context.Context, code string) (storage.AuthCode, error) {
	c, err := a.Storage.GetAuthCode(ctx, code)
	if err == nil && !a.policy().allows(c.ClientID, c.Claims.Groups) {
		exchangeOf(ctx).ended = errOutside.Error()
		return storage.AuthCode{}, storage.ErrNotFound
	}
	return c, err
}

func (a allowed) GetRefresh(ctx context.Context, id string) (storage.RefreshToken, error) {
	r, err := a.Storage.GetRefresh(ctx, id)
	if err == nil && !a.policy().allows(r.ClientID, r.Claims.Groups) {
		exchangeOf(ctx).ended = errOutside.Error()
		return storage.RefreshToken{}, storage.ErrNotFound
	}
	return r, err
}

// UpdateRefreshToken updates a refresh token in the embedded Storage. If the person no longer
// exists, or is no longer in a group that may use the client, it invalidates the token and returns
// an error.
func (a allowed) UpdateRefreshToken(ctx context.Context, id string, change func(storage.RefreshToken) (storage.RefreshToken, error)) error {
	var client, user string
	x := exchangeOf(ctx)
	err := a.Storage.UpdateRefreshToken(ctx, id, func(was storage.RefreshToken) (storage.RefreshToken, error) {
		client, user = was.ClientID, person(was.ConnectorID, was.Claims.UserID)
		is, err := change(was)
		if err == nil && !a.policy().allows(is.ClientID, is.Claims.Groups) {
			x.ended = errOutside.Error()
			return is, errOutside
		}
		return is, err
	})
	if err != nil && x.ended != "" {
		return errors.Join(err, a.tokens.end(ctx, id, client, user))
	}
	return err
}
