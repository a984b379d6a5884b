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
	dir := cmd.Flags().String("flake", ".", "`DIR` that contains the flake of the cluster")
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
		Long: `Add a machine to the cluster as a host. The command writes hosts/NAME.nix in the flake, and
prints what the new file changes. Nothing is sent to the machine. The change takes effect when
you publish or deploy. To undo the command, remove the file.

The file contains the public SSH host key of the machine, with which the machine proves that it
is this host. The command fetches the key from the first ADDRESS and prints it. Compare it with
the key on the console of the machine, and confirm. If the machine cannot be reached, pass its
key with --ssh-host-key. If the machine has no key yet, pass --join.

The first host of a cluster also becomes its first provider host.`,
		Args: words(1, 9),
	}
	var h scaffold.Host
	var key scaffold.KeySource
	f := cmd.Flags()
	f.StringVar(&h.Group, "group", "", "path of the `GROUP` that the host belongs to, such as eu/fra")
	f.BoolVar(&h.Device, "device", false, "add the host as a device, such as a laptop; the compiler places no services on devices")
	f.StringArrayVar(&h.Users, "user", nil, "name of a `PERSON` who uses the host; may be repeated")
	f.StringVar(&key.Key, "ssh-host-key", "", "use this `LINE` of the host's /etc/ssh/ssh_host_ed25519_key.pub instead of fetching the key")
	f.StringVar(&key.Fingerprint, "fingerprint", "", "accept the fetched key without asking, if it has this fingerprint: `SHA256:…`")
	f.IntVar(&key.Port, "ssh-port", 22, "`PORT` of the SSH server on the host")
	f.BoolVar(&key.Join, "join", false, "write no key; the host creates its own device key, which you admit with florctl join approve")
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
			return nil, fmt.Errorf("host %s already exists", h.Name)
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
		Long: `Add a service to the cluster. A service is a program that listens on a port of a host; others
reach it by its name. The command writes services/NAME.nix in the flake, and prints what the new
file changes. The change takes effect when you publish or deploy. To undo the command, remove
the file.

A new service cannot be reached until a role gives access to it. With --for, the command also
writes roles/ROLE.nix, a new role that reaches the service. To use an existing role, add the
service to the file of that role yourself.`,
		Args: words(1, 1),
	}
	var s scaffold.Service
	f := cmd.Flags()
	f.StringVar(&s.Host, "host", "", "name of the `HOST` on which the service runs")
	f.IntVar(&s.Port, "port", 0, "`PORT` at which the service listens on 127.0.0.1 of its host, from 1 to 65535")
	f.IntVar(&s.ListenPort, "listen-port", 80, "`PORT` at which callers reach the service by its name, from 1 to 65535")
	f.StringVar(&s.User, "run-as", "", "name of the Unix `ACCOUNT` that the service runs as on its host")
	f.StringArrayVar(&s.Roles, "role", nil, "name of a `ROLE` that the service gets, so that it can reach other services itself; may be repeated")
	cmd.MarkFlagRequired("host")
	cmd.MarkFlagRequired("port")
	role := f.String("for", "", "name of a new `ROLE` to create, which reaches the service")
	there := func(t compile.Topology, name string) bool { _, ok := t.Services[name]; return ok }
	service := adding(&cobra.Command{Use: "service", Short: "Add or rename a service"}, cmd, there, func(t compile.Topology, args []string) ([]scaffold.File, error) {
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
			return nil, fmt.Errorf("role %s already exists: add %q to the services of this role, and leave out --for", *role, s.Name)
		}
		return []scaffold.File{s.File(), scaffold.Role(*role, s.Name)}, scaffold.CheckName("--for", *role)
	})
	service.AddCommand(newServiceRenameCmd())
	return service
}

func newUserCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME [--role ROLE...]",
		Short: "Add a person to the cluster",
		Long: `Add a person to the cluster. The command writes users/NAME.nix in the flake, and prints what the
new file changes. The change takes effect when you publish or deploy. To undo the command,
remove the file.

A person can only use hosts that list the person in hosts.<name>.users. To add the person to
this list, pass --user to florctl host add, or edit the file of an existing host.`,
		Args: words(1, 1),
	}
	var u scaffold.User
	cmd.Flags().StringArrayVar(&u.Roles, "role", nil, "name of a `ROLE` that the person gets; may be repeated")
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
