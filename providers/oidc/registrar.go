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

// These are the values of the field registrar in a policy. Each names a protocol by which clients
// are registered at an external issuer.
const (
	registrarRFC7591  = "rfc7591"
	registrarKanidm   = "kanidm"
	registrarPocketID = "pocket-id"
)

var registrars = []string{registrarKanidm, registrarPocketID, registrarRFC7591}

// registrar registers clients at an external issuer.
type registrar interface {
	// register registers a client, or makes another secret for the former one. mark identifies the
	// client at the issuer if the process ends before the client is stored.
	register(ctx context.Context, name, mark string, want Request, former []registered) (made, error)

	// update changes a client but not its credentials. The error is errors.ErrUnsupported if
	// another client must be registered, and a refusal with status 404 if there is no client.
	update(ctx context.Context, name string, c made, want Request) error

	// pending returns the client that register makes with a mark, and false if the issuer chooses
	// its ID. Registering with the same mark again replaces it.
	pending(name, mark string) (made, bool)

	// end deletes a client, or one secret of a client that has others.
	end(ctx context.Context, c made, whole bool) error
}

// made is a client that an issuer has made, in the form of RFC 7591 section 3.2.1 or of the
// issuer's own API.
type made struct {
	ID     string `json:"client_id"`
	Secret string `json:"client_secret"`
	URI    string `json:"registration_client_uri"`
	Token  string `json:"registration_access_token"`

	Registrar string `json:"florete_registrar,omitempty"` // empty for RFC 7591
	Issuer    string `json:"florete_issuer,omitempty"`    // of this client alone: what follows the issuer's address
}

// registrar returns the registrar for a protocol, which uses the address in a policy.
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

// validAt returns an error if a registrar cannot make the claims and groups of a client.
func validAt(kind string, r Request) error {
	switch {
	case kind == registrarKanidm:
		return validKanidm(r)
	case len(r.Claims)+len(r.Groups) > 0:
		return errors.New("claims and groups: the issuer cannot make them for single clients")
	}
	return nil
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
