package oidc

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/secretfile"
)

// How an issuer of others registers clients.
const (
	registrarRFC7591  = "rfc7591"
	registrarKanidm   = "kanidm"
	registrarPocketID = "pocket-id"
)

var registrars = []string{registrarKanidm, registrarPocketID, registrarRFC7591}

// registrar registers clients at an issuer of others.
type registrar interface {
	// register makes a client, or another secret of the former one. A mark finds at the issuer
	// what a process made that ended before it kept it.
	register(ctx context.Context, name, mark string, want Request, former []registered) (made, error)

	// update changes what a client may do, not its credentials. errors.ErrUnsupported is that
	// another client has to be registered, a refusal with status 404 that there is none.
	update(ctx context.Context, name string, c made, want Request) error

	// pending is what registering under a mark makes, false where the issuer chooses that. With
	// the same mark it is registered anew.
	pending(name, mark string) (made, bool)

	// end deletes a client, or one secret alone of a client that has others.
	end(ctx context.Context, c made, whole bool) error
}

// made is a client as the issuer answers (RFC 7591 section 3.2.1), or as its API has it.
type made struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
	URI    string `json:"registration_client_uri"`
	Token  string `json:"registration_access_token"`

	Registrar string `json:"florete_registrar,omitempty"` // empty for RFC 7591
	Issuer    string `json:"florete_issuer,omitempty"`    // of this client alone: what follows the issuer's address
}

// registrar returns the registrar of a kind at the address of a policy.
func (p *Provider) registrar(kind string, policy *Policy) (registrar, error) {
	at := policy.registration
	b, err := secretfile.ReadFile(p.cfg.RegistrationToken)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	token := strings.TrimSpace(string(b))
	if kind == "" || kind == registrarRFC7591 {
		return endpoint{at, token, policy.issuer}, nil
	}
	if token == "" {
		return nil, hostapi.Errorf(hostapi.CodeUnavailable, "the provider has no token that lets it register at %s: write it to registration-token beside its state, mode 0600", at)
	}
	at = strings.TrimSuffix(at, "/")
	if kind == registrarKanidm {
		return kanidm{at, token}, nil
	}
	return pocketID{at, token}, nil
}

func errNoGroup(group, client string) error {
	return fmt.Errorf("it has no group %q, of allowedGroups of %s: make it there, or take it out", group, client)
}

func validRegistrar(kind, registration string) error {
	switch {
	case kind != "" && !slices.Contains(registrars, kind):
		return fmt.Errorf("%q: want one of %q", kind, registrars)
	case kind != "" && registration == "":
		return errors.New("want registration beside it, the address of the issuer")
	}
	return nil
}
