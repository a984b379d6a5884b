package main

import (
	"errors"
	"os"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
)

// errPartly ends florctl with 2, once warnings name the providers that did not take what others did.
var errPartly = errors.New("only some providers took it")

// via adds the flag for how config providers are reached. The function it returns gives those of a
// cluster. What the command prints may be their words, so nothing of it steers a terminal.
func via(cmd *cobra.Command) func(compile.Topology) (client.Providers, error) {
	cmd.SetOut(terminal.Writer(os.Stdout))
	cmd.SetErr(terminal.Writer(os.Stderr))
	how := cmd.Flags().String("via", "forwarder", "reach the cluster's config providers by this host's `forwarder`, or, before there is one, by ssh as root@HOST")
	return func(t compile.Topology) (client.Providers, error) { return client.Reach(t, *how) }
}
