// Command flor-provider answers hosts' requests for what they need, as the policy
// compiled for this host allows.
package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"florete/providers/settings"

	"github.com/spf13/cobra"
)

func main() { os.Exit(run()) }

func run() int {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	root := &cobra.Command{
		Use:           "flor-provider",
		Short:         "Answer what hosts of a Florete cluster need",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	root.AddCommand(
		withSettings(&cobra.Command{Use: "run", Short: "Serve until told to stop"}, func(cmd *cobra.Command, s *settings.Settings) error {
			return serve(cmd.Context(), s, slog.New(slog.NewTextHandler(cmd.ErrOrStderr(), nil)))
		}),
		certifyCmd(),
		publishCmd(),
		auditCmd(),
	)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		return 1
	}
	return 0
}
