package main

import (
	"github.com/florete/florete/providers/cert"
	"github.com/florete/florete/providers/config"
	"github.com/florete/florete/providers/federation"
	"github.com/florete/florete/providers/file"
	"github.com/florete/florete/providers/jwt"
	"github.com/florete/florete/providers/oidc"
	"github.com/florete/florete/providers/secret"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
)

// kinds are the kinds of need that flor-provider can answer; nix/kinds/default.nix lists the
// same.
var kinds = settings.Kinds{
	cert.Name:       func() server.Section { return new(cert.Settings) },
	config.Name:     func() server.Section { return new(config.Settings) },
	federation.Name: func() server.Section { return new(federation.Settings) },
	file.Name:       func() server.Section { return new(file.Settings) },
	jwt.Name:        func() server.Section { return new(jwt.Settings) },
	oidc.Name:       func() server.Section { return new(oidc.Settings) },
	secret.Name:     func() server.Section { return new(secret.Settings) },
}
