package oidc

import (
	"context"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// Answer returns the OIDC client of a service: the issuer, the client ID and, unless the client is
// public, the client secret. If the client does not exist yet, Answer registers it first.
func (p *Provider) Answer(ctx context.Context, policy *Policy, c server.Call) (server.Decision, error) {
	want := policy.requests.Of(c)
	if c.Rotation.Number > 0 {
		want.Rotation = &c.Rotation
	}
	id := want.client()
	have, modified, err := p.clients.get(ctx, id)
	if err != nil {
		return server.Decision{}, err
	}
	want.PKCE = have.PKCE || modified == 0
	values := map[string]string{"issuer": policy.issuer, "clientId": id}
	switch {
	case policy.registration != "":
		at, err := p.external(ctx, c, policy, want)
		if err != nil {
			return server.Decision{}, err
		}
		values["clientId"], values["clientSecret"] = at.ID, at.Secret
		if at.Issuer != "" {
			values["issuer"] = strings.TrimSuffix(policy.issuer, "/") + at.Issuer
		}
		if want.public {
			delete(values, "clientSecret")
		}
	case !want.public:
		values["clientSecret"] = p.clients.secret(id, want.Generation, c.Rotation.Number)
	}
	d := server.Decision{
		Answer: hostapi.Answer{Values: values},
		If:     []store.Cond{{Key: key(id), Modified: modified}},
		Detail: map[string]string{"client": values["clientId"], "generation": strconv.Itoa(want.Generation)},
	}
	if !want.equal(have) {
		d.Then = []store.Op{store.Put(key(id), want.encode())}
	}
	return d, nil
}

// Rotation returns the number and time of the last rotation of the client's secret. If the request
// asks for a new rotation, Rotation returns an error for a public client, which has no secret, and
// for a client that several hosts use, because the other hosts would keep the old secret.
func (p *Provider) Rotation(ctx context.Context, policy *Policy, c server.Call) (server.Rotation, error) {
	want := policy.requests.Of(c)
	if c.Request.Rotation != 0 && want.public {
		return server.Rotation{}, hostapi.Errorf(hostapi.CodeRotation,
			"need %q: the client of %s is public and has no secret", c.Request.Need, want.Service)
	}
	if hosts := len(policy.hosts[want.Service]); c.Request.Rotation != 0 && hosts > 1 {
		return server.Rotation{}, hostapi.Errorf(hostapi.CodeRotation,
			"need %q: %d hosts have the client of %s: raise its generation in the topology, which has all of them fetch another secret", c.Request.Need, hosts, want.Service)
	}
	have, _, err := p.clients.get(ctx, want.client())
	return have.rotation(), err
}
