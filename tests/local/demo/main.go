// Command demo runs the example cluster on this machine and shows everything that the README
// describes. Each host has its own processes, state directory and loopback address. The script
// ./tests/demo builds the command and runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/florete/florete/tests/local"
)

func main() {
	var o options
	flag.StringVar(&o.Repo, "repo", ".", "checkout of Florete")
	flag.StringVar(&o.Bin, "bin", ".", "directory with flor, florctl and flor-provider")
	flag.StringVar(&o.Work, "work", "", "directory to work in, made and removed when not given")
	flag.StringVar(&o.json, "json", "", "also write the result to this `file`")
	flag.BoolVar(&o.keep, "keep", false, "leave the cluster running until interrupted")
	flag.Parse()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	ok, err := runDemo(ctx, o)
	if err != nil {
		fmt.Fprintln(os.Stderr, "demo:", err)
	}
	if err != nil || !ok {
		os.Exit(1)
	}
}

// options contains the values of the demo's command-line flags.
type options struct {
	local.Operator
	json string
	keep bool
}
