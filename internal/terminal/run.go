package terminal

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/secretfile"
)

// Run runs the command of a program that os.Args names. The command's context ends on SIGINT and
// SIGTERM.
func Run(root *cobra.Command) error {
	secretfile.ProtectMemory()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := RefuseUnknown(root, os.Args[1:]); err != nil {
		return err
	}
	return root.ExecuteContext(ctx)
}
