package main

import (
	"fmt"
	"io"
	"net/netip"
	"time"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/explain"
)

func newExplainCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "explain [FLAKE] WHO SERVICE",
		Short: "Explain why somebody reaches a service, or does not",
		Long: `Explain why a person, a host or a service reaches a service, or does not. If WHO reaches
SERVICE, the command prints the roles and groups that give this access. If not, it prints the
roles that would give access, who has these roles, and the changes of the flake that would give
access. For each change, it also prints everything else that the change would open.

WHO is a user, a node (the identity of a host) or a service, such as user/alice, node/forge or
service/wiki. SERVICE is the name of a service, or a host name or URL that programs use for it,
such as wiki.demo.flor.rete. With an account before it, such as root@shell.forge, the command
explains whether WHO may log in there as this account over SSH.

If WHO is stranger, SERVICE is a public URL such as https://wiki.example.org/admin, and the command
prints which ingress answers, and which rule permits or denies the request. The flag --from gives
the address of the stranger.

The command reads the flake alone. It does not show who is revoked or suspended, nor which grants
are in force. For this, run florctl revocations and florctl access list.`,
	}
	from := cmd.Flags().String("from", "", "address of a stranger, for WHO stranger")
	return question(cmd, 2, func(a *explain.Access, words []string) (fmt.Stringer, error) {
		if a.IsStranger(words[0]) {
			var address netip.Addr
			if *from != "" {
				var err error
				if address, err = netip.ParseAddr(*from); err != nil {
					return nil, fmt.Errorf("--from %q: want an IP address", *from)
				}
			}
			return a.Visit(words[1], address)
		}
		if *from != "" {
			return nil, fmt.Errorf("--from %s: want WHO to be %s, everyone else is known by identity", *from, explain.Stranger)
		}
		who, err := a.Principal(words[0])
		if err != nil {
			return nil, err
		}
		if login, ok := a.Login(words[1]); ok {
			return a.ExplainLogin(who, login), nil
		}
		service, err := a.Service(words[1])
		return a.Explain(who, service), err
	})
}

// question makes cmd a question about access, with count words that may be followed by the flake.
func question(cmd *cobra.Command, count int, answer func(*explain.Access, []string) (fmt.Stringer, error)) *cobra.Command {
	from := source(cmd)
	cmd.Args = words(count, count+1)
	show := terminal.Shown(cmd, "print the answer as a JSON object")
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
