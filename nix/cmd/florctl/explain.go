package main

import (
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/explain"
)

func newExplainCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [FLAKE] WHO SERVICE",
		Short: "Explain why someone reaches a service",
		Long: `Explain why someone reaches a service: print the roles and groups that lead from one to the other.
If nothing leads there, print the roles that would, who has them, and which changes of the topology
would give access, each with everything else that it would open.

WHO is a user, a node or a service, such as user/alice, node/forge or service/wiki. SERVICE is its
name, or a name or URL that programs use, such as wiki.demo.flor.rete.

The answer comes from the flake alone. florctl revocations prints who is revoked or suspended.`,
	}
	return question(cmd, 2, func(a *explain.Access, words []string) (fmt.Stringer, error) {
		who, err := a.Principal(words[0])
		if err != nil {
			return nil, err
		}
		service, err := a.Service(words[1])
		return a.Explain(who, service), err
	})
}

// question makes cmd a question about access, with count words that may be followed by the flake.
func question(cmd *cobra.Command, count int, answer func(*explain.Access, []string) (fmt.Stringer, error)) *cobra.Command {
	from := source(cmd)
	cmd.Args = words(count, count+1)
	show := shown(cmd, "print the answer as JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		flake := args[:len(args)-count]
		src, err := from(flake)
		if err != nil {
			return err
		}
		if len(flake) == 1 && !src.Exists() {
			names := "one name"
			if count > 1 {
				names = fmt.Sprintf("%d names", count)
			}
			return fmt.Errorf("%s: no such directory, want %s, with %s", flake[0], cmd.UseLine(), names)
		}
		t, err := evaluated(cmd, src, compile.ReadTopology)
		if err != nil {
			return err
		}
		a, err := answer(explain.At(t, time.Now()), args[len(args)-count:])
		if err != nil {
			return err
		}
		return show(a, func(w io.Writer) error { _, err := fmt.Fprint(w, a); return err })
	}
	return cmd
}
