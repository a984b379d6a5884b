package oidc

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/seal"
	"github.com/florete/florete/providers/store"
)

// registration is the record of a client: all of it but the secret.
type registration struct {
	Service      florete.ID `json:"service"`
	RedirectURIs []string   `json:"redirectURIs"`
	Generation   int        `json:"generation"` // the last that the policy granted
}

// client is the client id of the service: its user-facing name.
func (r registration) client() string {
	d, err := florete.Dial(r.Service)
	if err != nil {
		panic(err) // decode let no other service in
	}
	return florete.Render(d)
}

func (r registration) equal(o registration) bool {
	return r.Service == o.Service && r.Generation == o.Generation && slices.Equal(r.RedirectURIs, o.RedirectURIs)
}

func (r registration) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // strings and a number
	}
	return b
}

// prefix is where registrations lie, by client id.
const prefix = "oidc/registration/"

func key(client string) string { return prefix + client }

// clients are the registered clients.
type clients struct {
	db  store.Store
	key *seal.Key
}

// get reads a registration and the revision that wrote it, both zero when there
// is none.
func (c clients) get(ctx context.Context, client string) (r registration, modified int64, err error) {
	e, err := c.db.Get(ctx, key(client))
	if errors.Is(err, store.ErrNotFound) {
		return r, 0, nil
	}
	if err != nil {
		return r, 0, err
	}
	if err := json.Unmarshal(e.Value, &r); err != nil {
		return r, 0, fmt.Errorf("%s: %w", e.Key, err)
	}
	return r, e.Modified, nil
}

// secret is the client's secret of a generation.
func (c clients) secret(client string, generation int) string {
	purpose := fmt.Sprintf("florete oidc client secret v1\n%s\n%d", client, generation)
	return base64.RawURLEncoding.EncodeToString(c.key.Derive(purpose, 32))
}
