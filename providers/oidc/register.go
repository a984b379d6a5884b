package oidc

import (
	"context"
	"strconv"

	"github.com/florete/florete/providers/api"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Answer registers the client of a service, or finds it registered.
func (p *Provider) Answer(ctx context.Context, c server.Call) (server.Decision, error) {
	policy := c.Compiled.(*Policy)
	want := policy.requests.Of(c)
	id := want.client()
	have, modified, err := p.clients.get(ctx, id)
	if err != nil {
		return server.Decision{}, err
	}
	d := server.Decision{
		Answer: api.Answer{Values: map[string]string{
			"issuer":       policy.issuer,
			"clientId":     id,
			"clientSecret": p.clients.secret(id, want.Generation),
		}},
		If:     []store.Cond{{Key: key(id), Modified: modified}},
		Detail: map[string]string{"client": id, "generation": strconv.Itoa(want.Generation)},
	}
	if !want.equal(have) {
		d.Then = []store.Op{store.Put(key(id), want.encode())}
	}
	return d, nil
}
