// Command florctl is the operator's program: it validates and compiles a cluster, publishes its
// documents, and manages its certificate authority.
package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/fleet"
	"github.com/florete/florete/nix/operator/published"
)

func main() { os.Exit(run()) }

func run() int {
	err := terminal.Run(newRoot())
	if errors.Is(err, errWidens) || errors.Is(err, fleet.ErrAttention) || errors.Is(err, published.ErrPartly) {
		return 2
	}
	if err != nil {
		fmt.Fprintln(terminal.Writer(os.Stderr), "error:", err)
		return 1
	}
	return 0
}
