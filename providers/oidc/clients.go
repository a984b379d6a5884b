package oidc

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// registration is the record of a client: all of it but the secret.
type registration struct {
	Service      spiffe.ID `json:"service"`
	RedirectURIs []string  `json:"redirectURIs"`
	Generation   int       `json:"generation"` // the last that the policy granted

	// PKCE reports whether sign-ins must have a code challenge: of clients that were registered since
	// releases want it. Others may have a library that knows none.
	PKCE bool `json:"pkce,omitempty"`

	Rotation *server.Rotation `json:"-"` // nil before the first

	public bool // of a grant: whether it has no secret
}

// rotation is that of the client's secret.
func (r registration) rotation() server.Rotation {
	if r.Rotation == nil {
		return server.Rotation{}
	}
	return *r.Rotation
}

// client is the client id of the service: its user-facing name.
func (r registration) client() string {
	d, err := spiffe.Dial(r.Service)
	if err != nil {
		panic(err) // decode let no other service in
	}
	return spiffe.Render(d)
}

func (r registration) equal(o registration) bool {
	return r.Service == o.Service && r.Generation == o.Generation && r.rotation().Number == o.rotation().Number && slices.Equal(r.RedirectURIs, o.RedirectURIs)
}

// encode writes what was rotated as a list, with the rotation. Releases before rotations
// cannot read that, and refuse, where they would have the former secret work again.
func (r registration) encode() []byte {
	var v any = r
	if r.Rotation != nil {
		v = []any{r, r.Rotation}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings and numbers
	}
	return b
}

func (r *registration) decode(b []byte) error {
	if !bytes.HasPrefix(b, []byte("[")) {
		return json.Unmarshal(b, r)
	}
	rotation := new(server.Rotation)
	err := json.Unmarshal(b, &[2]any{r, rotation})
	r.Rotation = rotation
	return err
}

// prefix is where registrations lie, by client id.
const prefix = "oidc/registration/"

func key(client string) string { return prefix + client }

// clients are the registered clients.
type clients struct {
	db  store.Store
	key *sealedstore.Key
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
	if err := r.decode(e.Value); err != nil {
		return r, 0, fmt.Errorf("%s: %w", e.Key, err)
	}
	return r, e.Modified, nil
}

// overlap is how long the secret of before a rotation is accepted beside the new one.
const overlap = 15 * time.Minute

// accepted is the secret that a client may present in a generation: the newest, unless what it
// presents is that of before the last rotation, and the overlap has not ended.
func (c clients) accepted(r registration, generation int, presented string) string {
	id, rotation := r.client(), r.rotation()
	if rotation.Number > 0 && rotation.Within(overlap, time.Now()) {
		former := c.secret(id, generation, rotation.Number-1)
		if subtle.ConstantTimeCompare([]byte(former), []byte(presented)) == 1 {
			return former
		}
	}
	return c.secret(id, generation, rotation.Number)
}

// secret is the client's secret of a generation and rotation.
func (c clients) secret(client string, generation, rotation int) string {
	purpose := fmt.Sprintf("florete oidc client secret v1\n%s\n%d", client, generation)
	if rotation != 0 {
		purpose += fmt.Sprintf("\n%d", rotation)
	}
	return base64.RawURLEncoding.EncodeToString(c.key.Derive(purpose, 32))
}
