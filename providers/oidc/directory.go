package oidc

import (
	"context"
	"errors"
	"strings"

	"github.com/dexidp/dex/storage"

	"github.com/florete/florete/internal/trust"
)

// directory is Dex's storage, restricted to clients that are registered, granted and not revoked.
// Dex only reads clients. They are registered by POST /oidc/request alone.
type directory struct {
	storage.Storage
	clients clients
	policy  func() *Policy
	revoked func() *trust.Revocations
}

var errReadOnly = errors.New("oidc: clients are registered by POST /oidc/request alone")

func (d directory) GetClient(ctx context.Context, id string) (storage.Client, error) {
	r, _, err := d.clients.get(ctx, id)
	if err != nil {
		return storage.Client{}, err
	}
	policy := d.policy()
	if policy == nil {
		return storage.Client{}, storage.ErrNotFound
	}
	// A record may be of a higher generation, from before an older policy came into force.
	most, ok := policy.generations[r.Service]
	if r.Service.IsZero() || !ok {
		return storage.Client{}, storage.ErrNotFound
	}
	if policy.ends(d.revoked(), r.Service) {
		return storage.Client{}, storage.ErrNotFound
	}
	c := storage.Client{ID: id, RedirectURIs: r.RedirectURIs, Name: r.Service.Name(), Public: policy.clients[id].Public}
	if !c.Public {
		c.Secret = d.clients.accepted(r, min(r.Generation, most), exchangeOf(ctx).presented)
	}
	return c, nil
}

func (d directory) ListClients(ctx context.Context) ([]storage.Client, error) {
	entries, _, err := d.clients.db.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	var all []storage.Client
	for _, e := range entries {
		switch c, err := d.GetClient(ctx, strings.TrimPrefix(e.Key, prefix)); {
		case err == nil:
			all = append(all, c)
		case err != storage.ErrNotFound:
			return nil, err
		}
	}
	return all, nil
}

func (directory) CreateClient(context.Context, storage.Client) error { return errReadOnly }

func (directory) DeleteClient(context.Context, string) error { return errReadOnly }

func (directory) UpdateClient(context.Context, string, func(storage.Client) (storage.Client, error)) error {
	return errReadOnly
}
