// Command flor is the program that runs on every host of a cluster. It fetches certificates,
// secrets and documents for the host, and forwards connections under the host's identities. A
// program called flor_NAME acts on the instance NAME, as flor --instance NAME does.
package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/terminal"
)

func main() { os.Exit(run()) }

// exit is an error that sets the exit status of the program. It has no message, because the command
// has already printed one.
type exit int

func (e exit) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

func run() int {
	slog.SetDefault(journal.New(os.Stderr))
	err := terminal.Run(newRoot(filepath.Base(os.Args[0]), &instance{}))
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
