package main

import (
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/coreos/go-systemd/v22/activation"
	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/hostdir"
)

// instance is the Florete instance that a command acts on. A host can run several instances. Each
// instance has its own directories and sockets, so the defaults of some flags depend on the
// instance.
type instance struct {
	hostdir.Instance
	followers []func()
}

// flag adds the flag --instance to the root command. If the program is called flor_NAME, the
// default of the flag is NAME.
func (m *instance) flag(root *cobra.Command) {
	root.PersistentFlags().Func("instance", "`NAME` of the instance of Florete, on a host that belongs to several clusters", m.set)
	if _, name, ok := strings.Cut(root.Name(), "flor_"); ok {
		root.SetArgs(append([]string{"--instance=" + name}, os.Args[1:]...))
	}
}

// set selects the instance by name and updates the flag defaults that depend on it.
func (m *instance) set(name string) (err error) {
	if m.Instance, err = hostdir.ParseInstance(name); err != nil {
		return err
	}
	for _, f := range m.followers {
		f()
	}
	return nil
}

// follow registers a flag whose default depends on the instance, so that the method set updates the
// flag. The argument of is the function that computes the default.
func (m *instance) follow(cmd *cobra.Command, name string, of func(hostdir.Instance) string) {
	f := cmd.Flags().Lookup(name)
	set := func() {
		if !f.Changed {
			f.DefValue = of(m.Instance)
			_ = f.Value.Set(f.DefValue)
		}
	}
	set()
	m.followers = append(m.followers, set)
}

// state adds the flag --state, which names the directory of the activation state.
func (m *instance) state(cmd *cobra.Command, l *hostdir.Layout) {
	cmd.Flags().StringVar((*string)(l), "state", "", "`DIR` in which flor activate keeps its state")
	m.follow(cmd, "state", func(m hostdir.Instance) string { return string(m.State()) })
}

// socket adds the flag --socket, which names the status socket of the forwarder.
func (m *instance) socket(cmd *cobra.Command, path *string) {
	cmd.Flags().StringVar(path, "socket", "", "path of the Unix `SOCKET` of the forwarder")
	m.follow(cmd, "socket", hostdir.Instance.Agent)
}

// refetch adds the flag --refetch, which names the directory in which activation finds requests.
func (m *instance) refetch(cmd *cobra.Command, dir *string) {
	cmd.Flags().StringVar(dir, "refetch", "", "`DIR` that flor activate --refetch watches for requests")
	m.follow(cmd, "refetch", hostdir.Instance.Refetch)
}

// passed returns the one socket that systemd passes to this process. The error names the unit of the
// socket.
func (m *instance) passed(unit string) (net.Listener, error) {
	listeners, err := activation.Listeners()
	if err == nil && (len(listeners) != 1 || listeners[0] == nil) {
		err = errors.New("systemd passes no socket")
	}
	if err != nil {
		return nil, fmt.Errorf("%w: start %s instead", err, m.Unit(unit))
	}
	return listeners[0], nil
}
