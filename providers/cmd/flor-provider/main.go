// Command flor-provider runs a provider of a cluster. Each process answers the requests of hosts
// for one kind of need, as far as the policy that was compiled for this host permits. If the
// program is called as flor-provider_NAME, it acts as flor-provider --instance NAME.
package main

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/florete/florete/internal/journal"
	"github.com/florete/florete/internal/terminal"
)

func main() { os.Exit(run()) }

func run() int {
	if err := terminal.Run(newRoot(filepath.Base(os.Args[0]), &target{})); err != nil {
		fmt.Fprintf(os.Stderr, "%serror: %v\n", journal.Prefix(os.Stderr, slog.LevelError), err)
		return 1
	}
	return 0
}
