// Command flor-provider runs a provider of a cluster. Each process answers the requests of hosts
// for one kind of need, as far as the policy that was compiled for this host permits. If the
// program is called as flor-provider_NAME, it acts as flor-provider --instance NAME.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/secretfile"
	"github.com/florete/florete/internal/terminal"
)

func main() { os.Exit(run()) }

func run() int {
	secretfile.ProtectMemory()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := newRoot(filepath.Base(os.Args[0]), &target{})
	err := terminal.RefuseUnknown(root, os.Args[1:])
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%serror: %v\n", journal.Prefix(os.Stderr, slog.LevelError), err)
		return 1
	}
	return 0
}
