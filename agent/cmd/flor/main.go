// Command flor is the program that runs on every host of a cluster. It fetches certificates,
// secrets and documents for the host, and forwards connections under the host's identities. A
// program called flor_NAME acts on the instance NAME, as flor --instance NAME does.
package main

import (
	"context"
	"errors"
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

// exit is an error that sets the exit status of the program. It has no message, because the command
// has already printed one.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func run() int {
	secretfile.ProtectMemory()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	slog.SetDefault(journal.New(os.Stderr))
	root := newRoot(filepath.Base(os.Args[0]), &instance{})
	err := terminal.RefuseUnknown(root, os.Args[1:])
	if err == nil {
		err = root.ExecuteContext(ctx)
	}
	var code exit
	switch {
	case err == nil:
		return 0
	case errors.As(err, &code):
		return int(code)
	}
	fmt.Fprintf(os.Stderr, "%sflor: %v\n", journal.Prefix(os.Stderr, slog.LevelError), err)
	return 1
}
