package main

import (
	"fmt"
	"strings"

	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/database"
	"github.com/florete/florete/providers/distribution"
	"github.com/florete/florete/providers/federation"
	"github.com/florete/florete/providers/file"
	"github.com/florete/florete/providers/git"
	"github.com/florete/florete/providers/jwt"
	"github.com/florete/florete/providers/oidc"
	"github.com/florete/florete/providers/own"
	"github.com/florete/florete/providers/secret"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
	"github.com/florete/florete/providers/ssh"
	"github.com/florete/florete/providers/tls"
	"github.com/florete/florete/providers/token"
)

// kinds contains the built-in kinds of need. nix/kinds/default.nix lists them as well. All other
// kinds are defined by the topology.
var kinds = settings.Kinds{
	cert.Name:         func() server.Section { return new(cert.Settings) },
	distribution.Name: func() server.Section { return new(distribution.Settings) },
	database.Name:     func() server.Section { return new(database.Settings) },
	federation.Name:   func() server.Section { return new(federation.Settings) },
	file.Name:         func() server.Section { return new(file.Settings) },
	git.Name:          func() server.Section { return new(git.Settings) },
	jwt.Name:          func() server.Section { return new(jwt.Settings) },
	oidc.Name:         func() server.Section { return new(oidc.Settings) },
	secret.Name:       func() server.Section { return new(secret.Settings) },
	ssh.Name:          func() server.Section { return new(ssh.Settings) },
	tls.Name:          func() server.Section { return new(tls.Settings) },
	token.Name:        func() server.Section { return new(token.Settings) },
}

// section returns an empty settings section of a kind.
func section(kind string) server.Section {
	if of, ok := kinds[kind]; ok {
		return of()
	}
	return own.Section(kind)
}

// load reads the settings for the process that answers needs of a kind. If the topology defines the
// kind, all its settings are in the policy.
func (t *target) load(kind string) (*settings.Settings, error) {
	if _, ok := kinds[kind]; ok {
		return settings.Load(t.Instance, t.settings, kinds, kind)
	}
	if !spiffe.IsLabel(kind) {
		return nil, fmt.Errorf("kind %q, want one of %s, or of the topology's own", kind, strings.Join(kinds.Names(), ", "))
	}
	s, err := settings.Load(t.Instance, t.settings, kinds, "")
	if err == nil {
		s.Section = section(kind)
	}
	return s, err
}
