package oidc

import (
	"context"
	"time"

	"github.com/dexidp/dex/storage"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
)

// These are the audit codes of refused sign-ins. A refusal of the endpoint /token has a code of RFC
// 6749 section 5.2 instead.
const (
	codePassword = "wrong-password"
	codeSlowed   = "slowed"
)

// row returns an audit row about an act of an account, or an act in the name of an account. The
// arguments account and client may be empty.
func row(from, what, account, client string) server.Row {
	r := server.Row{Time: time.Now().UTC(), From: from, Kind: Name, Outcome: server.Granted, Detail: map[string]string{"what": what}}
	if account != "" {
		r.Detail["account"] = account
	}
	if client != "" {
		r.Detail["client"] = client
	}
	return r
}

// refusal returns an audit row about a refused act.
func refusal(from, what, account, client, code, message string) server.Row {
	return row(from, what, account, client).Refuse(hostapi.Errorf(hostapi.Code{Name: code, Class: hostapi.Denied}, "%s", message))
}

// audited is a storage that writes an audit row before a code or tokens are handed out.
type audited struct {
	storage.Storage
	audit *server.Audit
}

func (a audited) CreateAuthCode(ctx context.Context, c storage.AuthCode) error {
	if err := a.Storage.CreateAuthCode(ctx, c); err != nil {
		return err
	}
	from := ""
	if in := signInOf(ctx); in != nil {
		from = in.from
	}
	return a.audit.Write(ctx, row(from, "sign-in", c.Claims.Email, c.ClientID))
}

func (a audited) DeleteAuthCode(ctx context.Context, code string) error {
	if err := a.Storage.DeleteAuthCode(ctx, code); err != nil {
		return err
	}
	x := exchangeOf(ctx)
	return a.audit.Write(ctx, row(x.from, "tokens", x.account, x.client))
}

func (a audited) UpdateRefreshToken(ctx context.Context, id string, change func(storage.RefreshToken) (storage.RefreshToken, error)) error {
	if err := a.Storage.UpdateRefreshToken(ctx, id, change); err != nil {
		return err
	}
	x := exchangeOf(ctx)
	return a.audit.Write(ctx, row(x.from, "refreshed tokens", x.account, x.client))
}
