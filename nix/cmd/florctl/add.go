package main

import (
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/scaffold"
)

// adding is the command "WHAT add" of one that is for things in a cluster's folder. It writes the
// files that make gives for the cluster as it is, unless there would be faults, and prints them
// with what they change.
func adding(of, cmd *cobra.Command, there func(t compile.Topology, name string) bool, make func(compile.Topology, []string) ([]scaffold.File, error)) *cobra.Command {
	dir := cmd.Flags().String("flake", ".", "directory of the cluster")
	args := cmd.Args
	from := source(cmd)
	cmd.Args = args
	of.AddCommand(cmd)
	cmd.RunE = func(cmd *cobra.Command, words []string) error {
		if err := scaffold.CheckName(of.Use, words[0]); err != nil {
			return err
		}
		src, err := from([]string{*dir})
		if err != nil {
			return err
		}
		return scaffold.Folder(*dir).Extend(cmd.Context(), src, func(t compile.Topology) bool { return there(t, words[0]) },
			func(t compile.Topology) ([]scaffold.File, error) { return make(t, words) }, cmd.OutOrStdout(), terminal.Colours(os.Stdout))
	}
	return of
}

func newHostCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME [ADDRESS...]",
		Short: "Add a host, with the SSH host key that it has",
		Long: `Add a host, in a file of its own. Its SSH host key is fetched from the first address, and
shown: it is for you to compare with what the host's console prints. A host that cannot be
reached has --ssh-host-key, or --join. Where the cluster has no providers, this host is the
first one.`,
		Args: words(1, 9),
	}
	var h scaffold.Host
	var key scaffold.KeySource
	f := cmd.Flags()
	f.StringVar(&h.Group, "group", "", "host group, such as eu/fra")
	f.BoolVar(&h.Device, "device", false, "a laptop or the like, where no service with replicas is placed")
	f.StringArrayVar(&h.Users, "user", nil, "who acts on it; several times")
	f.StringVar(&key.Key, "ssh-host-key", "", "`LINE` of /etc/ssh/ssh_host_ed25519_key.pub there; it is not fetched then")
	f.StringVar(&key.Fingerprint, "fingerprint", "", "`SHA256:…` that the fetched key must have, in place of a question")
	f.IntVar(&key.Port, "ssh-port", 22, "where its SSH server listens")
	f.BoolVar(&key.Join, "join", false, "declare no key: the host makes one, which florctl join approve admits")
	cmd.MarkFlagsMutuallyExclusive("ssh-host-key", "fingerprint", "join")
	there := func(t compile.Topology, name string) bool { _, ok := t.Hosts[name]; return ok }
	return adding(&cobra.Command{Use: "host", Short: "Add hosts to the cluster"}, cmd, there, func(t compile.Topology, args []string) (files []scaffold.File, err error) {
		h.Name, h.Addresses, h.Users = args[0], args[1:], distinct(h.Users)
		if h.Group != "" {
			if err := scaffold.CheckGroup(h.Group); err != nil {
				return nil, err
			}
		}
		if there(t, h.Name) {
			return nil, fmt.Errorf("host %s is there already", h.Name)
		}
		if h.SSHHostKey, err = key.Get(console(cmd), h); err != nil {
			return nil, err
		}
		files = append(files, h.File())
		if !slices.ContainsFunc(slices.Collect(maps.Values(t.Providers)), func(p compile.Provider) bool { return len(p.Hosts) > 0 }) {
			files = append(files, scaffold.Providers(h.Name))
		}
		return files, nil
	})
}

func newServiceCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME --host HOST --port PORT",
		Short: "Add a service, in a file of its own",
		Long: `Add a service that listens on a port of a host, in a file of its own. Roles say who reaches
it: with --for a new one does, in a file of its own; one that is there is yours to edit.`,
		Args: words(1, 1),
	}
	var s scaffold.Service
	f := cmd.Flags()
	f.StringVar(&s.Host, "host", "", "where it runs")
	f.IntVar(&s.Port, "port", 0, "where it listens on 127.0.0.1 there")
	f.IntVar(&s.ListenPort, "listen-port", 80, "where callers reach it, by its name")
	f.StringVar(&s.User, "run-as", "", "account that it runs as")
	f.StringArrayVar(&s.Roles, "role", nil, "what it may reach itself; several times")
	cmd.MarkFlagRequired("host")
	cmd.MarkFlagRequired("port")
	role := f.String("for", "", "new `ROLE` that reaches it")
	there := func(t compile.Topology, name string) bool { _, ok := t.Services[name]; return ok }
	return adding(&cobra.Command{Use: "service", Short: "Add services to the cluster"}, cmd, there, func(t compile.Topology, args []string) ([]scaffold.File, error) {
		s.Name, s.Roles = args[0], distinct(s.Roles)
		for flag, port := range map[string]int{"--port": s.Port, "--listen-port": s.ListenPort} {
			if port < 1 || port > 65535 {
				return nil, fmt.Errorf("%s %d, want a port from 1 to 65535", flag, port)
			}
		}
		if *role == "" {
			return []scaffold.File{s.File()}, nil
		}
		if _, ok := t.Roles[*role]; ok {
			return nil, fmt.Errorf("role %s is there already: write %q into its services, and leave --for", *role, s.Name)
		}
		return []scaffold.File{s.File(), scaffold.Role(*role, s.Name)}, scaffold.CheckName("--for", *role)
	})
}

func newUserCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME [--role ROLE...]",
		Short: "Add a person, in a file of its own",
		Long:  `Add a person, in a file of its own. Where they act is for hosts to say: hosts.<name>.users.`,
		Args:  words(1, 1),
	}
	var u scaffold.User
	cmd.Flags().StringArrayVar(&u.Roles, "role", nil, "what they may reach; several times")
	there := func(t compile.Topology, name string) bool { _, ok := t.Users[name]; return ok }
	return adding(&cobra.Command{Use: "user", Short: "Add people to the cluster"}, cmd, there, func(_ compile.Topology, args []string) ([]scaffold.File, error) {
		u.Name, u.Roles = args[0], distinct(u.Roles)
		return []scaffold.File{u.File()}, nil
	})
}

// distinct returns words each once, in the order of their first places.
func distinct(words []string) (once []string) {
	for _, w := range words {
		if !slices.Contains(once, w) {
			once = append(once, w)
		}
	}
	return once
}
