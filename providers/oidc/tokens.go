package oidc

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/dexidp/dex/storage"

	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/store"
)

// codesLive is the lifetime of a code. A code that was exchanged is remembered for the same time.
const codesLive = 5 * time.Minute

// These are key prefixes in the store. One is for records of codes that were exchanged, and the
// other for records of tokens that were ended.
const (
	spentPrefix = "oidc/spent/"
	endedPrefix = "oidc/ended/"
)

// exchange is the state of one request to /token.
type exchange struct {
	from            string // network address
	presented       string // secret of the client
	refresh, secret string // ID and newest part of the refresh token
	code            string // the code that is being exchanged
	account, client string // owner of the tokens
	user            string // the account's permanent ID
	replayed        bool
	ended           string // reason why the presented code or token has ended; empty if it has not
}

type exchangeKey struct{}

func withExchange(ctx context.Context, x *exchange) context.Context {
	return context.WithValue(ctx, exchangeKey{}, x)
}

func exchangeOf(ctx context.Context) *exchange {
	x, _ := ctx.Value(exchangeKey{}).(*exchange)
	if x == nil {
		x = &exchange{}
	}
	return x
}

// tokens is a storage that detects stolen codes and refresh tokens (RFC 9700 sections 2.1.1 and
// 4.14.2). If a code is presented twice, it ends the tokens that the code was exchanged for. If a
// refresh token that was replaced is presented, it ends the tokens as well.
type tokens struct {
	storage.Storage
	db  store.Store
	key *sealedstore.Key
}

// spent is the record of an exchanged code.
type spent struct {
	Refresh  string `json:"refresh"` // refresh token that came from the code; empty if there is none
	Replayed bool   `json:"replayed"`
	Client   string `json:"client"`
	User     string `json:"user"`
}

func spentAt(code string) string {
	sum := sha256.Sum256([]byte(code))
	return spentPrefix + hex.EncodeToString(sum[:])
}

func (t tokens) CreateAuthCode(ctx context.Context, c storage.AuthCode) error {
	c.Expiry = time.Now().Add(codesLive)
	return t.Storage.CreateAuthCode(ctx, c)
}

func (t tokens) GetAuthCode(ctx context.Context, code string) (storage.AuthCode, error) {
	c, err := t.Storage.GetAuthCode(ctx, code)
	x := exchangeOf(ctx)
	x.account, x.client, x.user = c.Claims.Email, c.ClientID, person(c.ConnectorID, c.Claims.UserID)
	if err == storage.ErrNotFound {
		if replay := t.replay(ctx, code, false); replay != nil {
			return c, replay
		}
	}
	return c, err
}

// DeleteAuthCode deletes an authorization code, so that it cannot be used again. If several callers
// have the same code, only one succeeds. If the code was used before, DeleteAuthCode invalidates
// the tokens that were issued for it.
func (t tokens) DeleteAuthCode(ctx context.Context, code string) error {
	err := t.Storage.DeleteAuthCode(ctx, code)
	if err == storage.ErrNotFound {
		return errors.Join(err, t.replay(ctx, code, true))
	}
	if err != nil {
		return err
	}
	x := exchangeOf(ctx)
	x.code = code
	return t.spend(ctx, code, func(s spent) spent {
		s.Client, s.User = x.client, x.user
		return s
	})
}

// CreateRefresh stores a refresh token and records the authorization code for which it was issued.
// If that code was used twice, CreateRefresh deletes the token again and returns an error.
func (t tokens) CreateRefresh(ctx context.Context, r storage.RefreshToken) error {
	if err := t.Storage.CreateRefresh(ctx, r); err != nil {
		return err
	}
	code, replayed := exchangeOf(ctx).code, false
	err := t.spend(ctx, code, func(s spent) spent {
		replayed = s.Replayed
		s.Refresh = r.ID
		return s
	})
	if err == nil && replayed {
		err = errors.New("oidc: the code was exchanged twice at once")
	}
	if err != nil {
		return errors.Join(err, t.Storage.DeleteRefresh(ctx, r.ID))
	}
	return nil
}

// replay ends the tokens of a code that is presented again. If the last argument is true, the code
// is known to have existed. Otherwise replay ignores a code without a record.
func (t tokens) replay(ctx context.Context, code string, was bool) error {
	if e, err := store.Find(ctx, t.db, spentAt(code)); err != nil || !was && e.Modified == 0 {
		return err
	}
	var had spent
	err := t.spend(ctx, code, func(s spent) spent {
		had = s
		s.Replayed = true
		return s
	})
	exchangeOf(ctx).replayed = true
	if err != nil {
		return err
	}
	return t.end(ctx, had.Refresh, had.Client, had.User)
}

// end ends the tokens that a client has for a user: the refresh token, if there is one, and earlier
// access tokens at /userinfo. It allows for differences from the clock of the replica that issued
// the tokens.
func (t tokens) end(ctx context.Context, refresh, client, user string) error {
	at := time.Now().UTC()
	if refresh != "" {
		if r, err := t.Storage.GetRefresh(ctx, refresh); err == nil {
			x := exchangeOf(ctx)
			x.account, x.client = r.Claims.Email, r.ClientID
			if r.LastUsed.After(at) {
				at = r.LastUsed.UTC()
			}
		}
	}
	lease, err := t.db.Lease(ctx, endedLives)
	if err != nil {
		return err
	}
	value, err := at.MarshalText()
	if err != nil {
		return err
	}
	if _, err := t.db.Commit(ctx, store.Txn{Then: []store.Op{{Key: endedAt(client, user), Value: value, Lease: lease}}}); err != nil {
		return err
	}
	if refresh == "" {
		return nil
	}
	if err := t.Storage.DeleteRefresh(ctx, refresh); err != storage.ErrNotFound {
		return err
	}
	return nil
}

func endedAt(client, user string) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", client, user))
	return endedPrefix + hex.EncodeToString(sum[:])
}

// ended reports whether tokens have been ended since a client received them for a user. The
// argument issued is the time of issuance. Times in tokens are whole seconds.
func (t tokens) ended(ctx context.Context, client, user string, issued time.Time) (bool, error) {
	e, err := store.Find(ctx, t.db, endedAt(client, user))
	if err != nil || e.Modified == 0 {
		return false, err
	}
	var at time.Time
	err = at.UnmarshalText(e.Value)
	return !issued.After(at), err
}

// spend changes the record of a code. It creates the record if there is none.
func (t tokens) spend(ctx context.Context, code string, change func(spent) spent) error {
	lease, err := t.db.Lease(ctx, codesLive)
	if err != nil {
		return err
	}
	return store.Update(ctx, t.db, spentAt(code), func(e store.Entry) (txn store.Txn, err error) {
		var s spent
		if e.Modified != 0 {
			if err := t.key.Decode(e, &s); err != nil {
				return txn, err
			}
		}
		op, err := t.key.Put(e.Key, change(s))
		op.Lease = lease
		return store.Txn{Then: []store.Op{op}}, err
	})
}

// GetRefresh returns a refresh token. If the client presented an older secret of the token,
// somebody may have stolen the token: GetRefresh invalidates it and returns storage.ErrNotFound.
// The secret before the current one is accepted for a short time, because the client may not have
// received the current one.
func (t tokens) GetRefresh(ctx context.Context, id string) (storage.RefreshToken, error) {
	r, err := t.Storage.GetRefresh(ctx, id)
	x := exchangeOf(ctx)
	if err != nil || x.refresh != id {
		return r, err
	}
	x.account, x.client = r.Claims.Email, r.ClientID
	lost := x.secret != "" && x.secret == r.ObsoleteToken && time.Since(r.LastUsed) <= refreshAgain
	if x.secret == r.Token || lost {
		return r, nil
	}
	x.replayed = true
	if err := t.end(ctx, id, r.ClientID, person(r.ConnectorID, r.Claims.UserID)); err != nil {
		return r, err
	}
	return storage.RefreshToken{}, storage.ErrNotFound
}

// presented parses a refresh token, or a subject, that Dex wrote: a protobuf message in base64 with
// two strings, the ID and the newest part. Any other text is itself the ID, as in Dex.
func presented(token string) (id, secret string) {
	b, err := base64.RawURLEncoding.DecodeString(token)
	var field [2]string
	for i := range field {
		if err != nil || len(b) < 2 || b[0] != byte(i+1)<<3|2 || b[1] > 0x7f || len(b) < 2+int(b[1]) {
			return token, ""
		}
		field[i], b = string(b[2:2+b[1]]), b[2+b[1]:]
	}
	return field[0], field[1]
}
