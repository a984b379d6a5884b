package terminal

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

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
	root.PersistentPreRunE = func(c *cobra.Command, _ []string) error { return refuseEmpty(c) }
	return root.ExecuteContext(ctx)
}

// refuseEmpty returns an error if a flag was given an empty text. A script passes one when the
// command fails whose output it meant, as in --confirm "$(jq -r .id change.json)". Without this
// check the program would do what it does without the flag.
func refuseEmpty(c *cobra.Command) (err error) {
	c.Flags().Visit(func(f *pflag.Flag) {
		if err == nil && f.Value.Type() == "string" && f.Value.String() == "" {
			what, _ := pflag.UnquoteUsage(f)
			err = fmt.Errorf("--%s: empty, want %s: %s --help", f.Name, strings.ToUpper(what), c.CommandPath())
		}
	})
	return err
}
