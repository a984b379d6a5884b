package main

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/spf13/cobra"

	"github.com/florete/florete/nix/compile"
	"github.com/florete/florete/nix/plan"
	"github.com/florete/florete/nix/scaffold"
)

// adding adds the flags of a command that writes files into a cluster's folder. The function
// it returns writes those that make gives for the cluster as it is, unless there would be
// faults, and prints them with what they change.
func adding(cmd *cobra.Command) func(make func(compile.Topology) ([]scaffold.File, error), there func(compile.Topology) bool) error {
	dir := cmd.Flags().String("flake", ".", "directory of the cluster")
	args := cmd.Args
	from := source(cmd)
	cmd.Args = args
	return func(make func(compile.Topology) ([]scaffold.File, error), there func(compile.Topology) bool) error {
		ctx, out := cmd.Context(), cmd.OutOrStdout()
		src, err := from([]string{*dir})
		if err != nil {
			return err
		}
		if _, err := os.Stat(filepath.Join(*dir, "cluster.nix")); err != nil {
			return fmt.Errorf("%w: want the folder of a cluster, as florctl init makes it", err)
		}
		before, err := compile.Read(ctx, src)
		if err != nil {
			return fmt.Errorf("mend these first: %w", err)
		}
		files, err := make(before.Topology)
		if err != nil {
			return err
		}
		var after compile.Snapshot
		err = scaffold.Folder(*dir).Add(ctx, files, func() (err error) {
			after, err = compile.Read(ctx, src)
			if err == nil && !there(after.Topology) {
				err = errors.New("the cluster does not have it: its flake.nix reads it from elsewhere, want florete.lib.folder ./. and nothing over it")
			}
			return err
		})
		if err != nil {
			return err
		}
		for _, f := range files {
			fmt.Fprintf(out, "%s:\n%s\n", filepath.Join(*dir, f.Path), f.Text)
		}
		p, err := plan.Compare(before, after)
		if err != nil {
			return err
		}
		return p.Text(out, colours(os.Stdout))
	}
}

func newHostCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "host", Short: "Add hosts to the cluster"}
	cmd.AddCommand(newHostAddCmd())
	return cmd
}

func newHostAddCmd() *cobra.Command {
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
	var key keySource
	f := cmd.Flags()
	f.StringVar(&h.Group, "group", "", "host group, such as eu/fra")
	f.BoolVar(&h.Device, "device", false, "a laptop or the like, where no service with replicas is placed")
	f.StringArrayVar(&h.Users, "user", nil, "who acts on it; several times")
	key.flags(f)
	cmd.MarkFlagsMutuallyExclusive("ssh-host-key", "fingerprint", "join")
	add := adding(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		h.Name, h.Addresses = args[0], args[1:]
		if err := scaffold.CheckName("host", h.Name); err != nil {
			return err
		}
		if h.Group != "" {
			if err := scaffold.CheckGroup(h.Group); err != nil {
				return err
			}
		}
		return add(func(t compile.Topology) (files []scaffold.File, err error) {
			if _, ok := t.Hosts[h.Name]; ok {
				return nil, fmt.Errorf("host %s is there already", h.Name)
			}
			if h.SSHHostKey, err = key.get(cmd, h); err != nil {
				return nil, err
			}
			files = append(files, h.File())
			if !slices.ContainsFunc(slices.Collect(maps.Values(t.Providers)), func(p compile.Provider) bool { return len(p.Hosts) > 0 }) {
				files = append(files, scaffold.Providers(h.Name))
			}
			return files, nil
		}, func(t compile.Topology) bool { _, ok := t.Hosts[h.Name]; return ok })
	}
	return cmd
}

func newServiceCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "service", Short: "Add services to the cluster"}
	cmd.AddCommand(newServiceAddCmd())
	return cmd
}

func newServiceAddCmd() *cobra.Command {
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
	add := adding(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		s.Name = args[0]
		if err := scaffold.CheckName("service", s.Name); err != nil {
			return err
		}
		return add(func(t compile.Topology) ([]scaffold.File, error) {
			if *role == "" {
				return []scaffold.File{s.File()}, nil
			}
			if _, ok := t.Roles[*role]; ok {
				return nil, fmt.Errorf("role %s is there already: write %q into its services, and leave --for", *role, s.Name)
			}
			return []scaffold.File{s.File(), scaffold.Role(*role, s.Name)}, scaffold.CheckName("--for", *role)
		}, func(t compile.Topology) bool { _, ok := t.Services[s.Name]; return ok })
	}
	return cmd
}

func newUserCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "user", Short: "Add people to the cluster"}
	cmd.AddCommand(newUserAddCmd())
	return cmd
}

func newUserAddCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME [--role ROLE...]",
		Short: "Add a person, in a file of its own",
		Long:  `Add a person, in a file of its own. Where they act is for hosts to say: hosts.<name>.users.`,
		Args:  words(1, 1),
	}
	var u scaffold.User
	cmd.Flags().StringArrayVar(&u.Roles, "role", nil, "what they may reach; several times")
	add := adding(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		u.Name = args[0]
		if err := scaffold.CheckName("user", u.Name); err != nil {
			return err
		}
		return add(func(compile.Topology) ([]scaffold.File, error) { return []scaffold.File{u.File()}, nil },
			func(t compile.Topology) bool { _, ok := t.Users[u.Name]; return ok })
	}
	return cmd
}
