// Package published manages the content of a cluster's config providers: the versions of its
// documents, which an operator signs, publishes and rolls back, and its revocation list.
package published

import (
	"errors"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
)

// Cluster is a cluster as the flake has it, with the providers that serve what is published of it.
type Cluster struct {
	Topology         compile.Topology
	Providers        client.Providers // at least one
	terminal.Console                  // of the operator
}

// ErrPartly is the error of what only some providers took, once warnings name the others.
var ErrPartly = errors.New("only some providers took it")
