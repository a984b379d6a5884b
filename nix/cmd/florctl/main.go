// Command florctl is the operator's program: it validates and compiles a cluster, publishes its
// documents, and manages its certificate authority.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/fleet"
	"github.com/florete/florete/nix/operator/published"
)

func main() { os.Exit(run()) }

func run() int {
	secretfile.ProtectMemory()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot()
	err := terminal.RefuseUnknown(root, os.Args[1:])
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if errors.Is(err, errWidens) || errors.Is(err, fleet.ErrAttention) || errors.Is(err, published.ErrPartly) {
		return 2
	}
	if err != nil {
		fmt.Fprintln(terminal.Writer(os.Stderr), "error:", err)
		return 1
	}
	return 0
}
