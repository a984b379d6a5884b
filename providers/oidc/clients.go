package oidc

import (
	"bytes"
	"context"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/sealedstore"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// registration is the record of a client, without its secret.
type registration struct {
	Service      spiffe.ID `json:"service"` // whose name is in the client ID
	RedirectURIs []string  `json:"redirectURIs"`
	Generation   int       `json:"generation"` // the last generation that the policy granted

	// PKCE reports whether sign-ins must have a code challenge (RFC 7636). It is set for all
	// clients that were registered since a challenge is required. Older clients may use a library
	// without PKCE.
	PKCE bool `json:"pkce,omitempty"`

	Rotation *server.Rotation `json:"-"` // nil before the first

	public bool // whether the client has no secret; only in grants
}

// rotation returns the rotation of the client's secret.
func (r registration) rotation() server.Rotation {
	if r.Rotation == nil {
		return server.Rotation{}
	}
	return *r.Rotation
}

// client returns the client ID. It is the name of the service that users see.
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

// encode encodes a rotated registration as a list that includes the rotation. Older releases, which
// do not know rotations, cannot read the list and therefore refuse the client. Otherwise they would
// accept the former secret again.
func (r registration) encode() []byte {
	var v any = r
	if r.Rotation != nil {
		v = []any{r, r.Rotation}
	}
	return strictjson.Encode(v)
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

// prefix is the beginning of the keys of registrations. The client ID follows it.
const prefix = "oidc/registration/"

func key(client string) string { return prefix + client }

// clients reads the registered clients.
type clients struct {
	db  store.Store
	key *sealedstore.Key
}

// get returns a registration and the revision of the store that wrote it. Both are zero if there is
// no registration.
func (c clients) get(ctx context.Context, client string) (r registration, modified int64, err error) {
	e, err := store.Find(ctx, c.db, key(client))
	if err != nil || e.Modified == 0 {
		return r, 0, err
	}
	if err := r.decode(e.Value); err != nil {
		return r, 0, fmt.Errorf("%s: %w", e.Key, err)
	}
	return r, e.Modified, nil
}

// overlap is the time for which the secret from before a rotation is still accepted.
const overlap = 15 * time.Minute

// accepted returns the secret with which a presented secret is compared. This is the secret from
// before the last rotation if that secret is presented within the overlap. Otherwise it is the
// newest secret.
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

// secret derives the client's secret for a generation and a rotation.
func (c clients) secret(client string, generation, rotation int) string {
	purpose := fmt.Sprintf("florete oidc client secret v1\n%s\n%d", client, generation)
	if rotation != 0 {
		purpose += fmt.Sprintf("\n%d", rotation)
	}
	return base64.RawURLEncoding.EncodeToString(c.key.Derive(purpose, 32))
}
