// Package published manages the content of a cluster's config providers: the versions of its
// documents, which an operator signs, publishes and rolls back, and its revocation list.
package published

import (
	"errors"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
)

// Cluster is a cluster in the flake, with the providers of its published content.
type Cluster struct {
	Topology         compile.Topology
	Providers        client.Providers // at least one
	terminal.Console                  // terminal of the operator
}

// ErrPartly is the error if only some providers accepted something. Warnings have named the others.
var ErrPartly = errors.New("only some providers took it")
