package main

import (
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/florete/florete"
)

// membership is which of this host's clusters a command is about. Defaults of flags
// follow it.
type membership struct {
	florete.Membership
	followers []func()
}

// flag adds --membership, which flor_NAME has before its arguments.
func (m *membership) flag(root *cobra.Command) {
	root.PersistentFlags().Func("membership", "`NAME` of the host's membership in this cluster, when it is a member of another too", m.set)
	if _, name, ok := strings.Cut(root.Name(), "flor_"); ok {
		root.SetArgs(append([]string{"--membership=" + name}, os.Args[1:]...))
	}
}

// set is what --membership does.
func (m *membership) set(name string) (err error) {
	if m.Membership, err = florete.ParseMembership(name); err != nil {
		return err
	}
	for _, f := range m.followers {
		f()
	}
	return nil
}

// follow has the membership say a flag's default.
func (m *membership) follow(cmd *cobra.Command, name string, of func(florete.Membership) string) {
	f := cmd.Flags().Lookup(name)
	set := func() {
		if !f.Changed {
			f.DefValue = of(m.Membership)
			_ = f.Value.Set(f.DefValue)
		}
	}
	set()
	m.followers = append(m.followers, set)
}

// state adds --state, where activation keeps what the host has.
func (m *membership) state(cmd *cobra.Command, l *florete.Layout) {
	cmd.Flags().StringVar((*string)(l), "state", "", "directory that flor activate keeps")
	m.follow(cmd, "state", func(m florete.Membership) string { return string(m.State()) })
}
