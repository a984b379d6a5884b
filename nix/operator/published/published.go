// Package published manages the content that a cluster's config providers serve to hosts: versions
// of the documents and the revocation list. An operator uses it to sign, publish and roll back
// documents, and to revoke identities.
package published

import (
	"errors"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
)

// Cluster is a cluster in the flake that an operator works with. It contains clients of the
// cluster's config providers and the operator's terminal.
type Cluster struct {
	Topology         compile.Topology
	Providers        client.Providers // at least one
	terminal.Console                  // terminal of the operator
}

// ErrPartly is the error of an operation whose content only some providers accepted. Warnings have
// already named the other providers.
var ErrPartly = errors.New("only some providers took it")
