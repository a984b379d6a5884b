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

// adding makes cmd the command "WHAT add", which adds things such as hosts to the folder of a
// cluster. It writes the files that make returns for the evaluated cluster, unless the cluster
// would then have faults, and prints the files and their effect.
func adding(of, cmd *cobra.Command, there func(t compile.Topology, name string) bool, make func(compile.Topology, []string) ([]scaffold.File, error)) *cobra.Command {
	dir := cmd.Flags().String("flake", ".", "`DIR` of the cluster")
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
		Short: "Add a host to the cluster",
		Long: `Add a host to the cluster: write hosts/NAME.nix, and print what that changes. Nothing is sent
to the host; the change takes effect when you deploy or publish. To undo it, remove the file.

The SSH host key is fetched from the first address and printed. Compare it with the key that
the console of the host shows, and confirm. For a host that cannot be reached, pass the key with
--ssh-host-key. For a host that has no key yet, pass --join. The first host of a cluster also
becomes its first provider host.`,
		Args: words(1, 9),
	}
	var h scaffold.Host
	var key scaffold.KeySource
	f := cmd.Flags()
	f.StringVar(&h.Group, "group", "", "`GROUP` of hosts that it belongs to, such as eu/fra")
	f.BoolVar(&h.Device, "device", false, "add a laptop or another device, where the compiler places no services")
	f.StringArrayVar(&h.Users, "user", nil, "`PERSON` who acts on the host; may be repeated")
	f.StringVar(&key.Key, "ssh-host-key", "", "use this `LINE` of the host's /etc/ssh/ssh_host_ed25519_key.pub, and do not fetch the key")
	f.StringVar(&key.Fingerprint, "fingerprint", "", "accept the fetched key if its fingerprint is this `SHA256:…`, without asking")
	f.IntVar(&key.Port, "ssh-port", 22, "`PORT` of the host's SSH server")
	f.BoolVar(&key.Join, "join", false, "declare no key: the host makes a device key, which florctl join approve admits")
	cmd.MarkFlagsMutuallyExclusive("ssh-host-key", "fingerprint", "join")
	there := func(t compile.Topology, name string) bool { _, ok := t.Hosts[name]; return ok }
	return adding(&cobra.Command{Use: "host", Short: "Add a host"}, cmd, there, func(t compile.Topology, args []string) (files []scaffold.File, err error) {
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
		Short: "Add a service to the cluster",
		Long: `Add a service that listens on a port of a host: write services/NAME.nix, and print what that
changes. It takes effect when you deploy or publish. To undo it, remove the file.

A service is reachable only through a role. With --for, a new role that reaches the service is
written to roles/ROLE.nix. To use a role that exists, add the service to its file yourself.`,
		Args: words(1, 1),
	}
	var s scaffold.Service
	f := cmd.Flags()
	f.StringVar(&s.Host, "host", "", "`HOST` on which the service runs")
	f.IntVar(&s.Port, "port", 0, "`PORT` of 127.0.0.1 on which the service listens there")
	f.IntVar(&s.ListenPort, "listen-port", 80, "`PORT` on which callers reach the service by its name")
	f.StringVar(&s.User, "run-as", "", "`ACCOUNT` that the service runs as")
	f.StringArrayVar(&s.Roles, "role", nil, "`ROLE` of the service, which decides what it may reach itself; may be repeated")
	cmd.MarkFlagRequired("host")
	cmd.MarkFlagRequired("port")
	role := f.String("for", "", "make a new `ROLE` that reaches the service")
	there := func(t compile.Topology, name string) bool { _, ok := t.Services[name]; return ok }
	return adding(&cobra.Command{Use: "service", Short: "Add a service"}, cmd, there, func(t compile.Topology, args []string) ([]scaffold.File, error) {
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
		Short: "Add a person to the cluster",
		Long: `Add a person: write users/NAME.nix, and print what that changes. It takes effect when you deploy
or publish. To undo it, remove the file.

A person acts on hosts that list them: hosts.<name>.users. Pass --user to florctl host add, or
edit the file of a host.`,
		Args: words(1, 1),
	}
	var u scaffold.User
	cmd.Flags().StringArrayVar(&u.Roles, "role", nil, "`ROLE` of the person; may be repeated")
	there := func(t compile.Topology, name string) bool { _, ok := t.Users[name]; return ok }
	return adding(&cobra.Command{Use: "user", Short: "Add a person"}, cmd, there, func(_ compile.Topology, args []string) ([]scaffold.File, error) {
		u.Name, u.Roles = args[0], distinct(u.Roles)
		return []scaffold.File{u.File()}, nil
	})
}

// distinct returns the words without repetitions, in order of first occurrence.
func distinct(words []string) (once []string) {
	for _, w := range words {
		if !slices.Contains(once, w) {
			once = append(once, w)
		}
	}
	return once
}
