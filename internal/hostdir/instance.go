package hostdir

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// Instance is the name of a host's membership in a cluster. If a host is a member of several
// clusters, each membership has its own directories, units and accounts, named florete_<instance>.
// The topology sets the instance in hosts.<name>.instance. On a host of a single cluster, the
// instance is "", and the names begin with florete.
type Instance string

var instance = regexp.MustCompile("^(" + InstancePattern + ")?$")

// ParseInstance returns the Instance with the given name. It returns an error if the name is not
// allowed. The empty name stands for the only instance of a host.
func ParseInstance(name string) (Instance, error) {
	if !instance.MatchString(name) {
		return "", fmt.Errorf("instance %q: want a lower-case letter, then letters, digits and hyphens, 14 characters at most", name)
	}
	return Instance(name), nil
}

// String returns the prefix of all names that belong to the instance, which is florete or
// florete_<instance>.
func (m Instance) String() string {
	if m == "" {
		return Prefix
	}
	return Prefix + "_" + string(m)
}

// Unit returns the full name of a systemd unit or account of the instance. For the name agent, it
// returns florete-agent or florete_<instance>-agent.
func (m Instance) Unit(name string) string { return m.String() + "-" + name }

// Program returns the command name by which a program works on this instance, such as
// flor_<instance>.
func (m Instance) Program(name string) string {
	return name + strings.TrimPrefix(m.String(), Prefix)
}

// State returns the directory in which activation keeps the state of the instance, such as
// /var/lib/florete.
func (m Instance) State() Layout { return Layout(filepath.Join("/var/lib", m.String())) }

// Run returns the directory of the instance's sockets, such as /run/florete.
func (m Instance) Run() string { return filepath.Join("/run", m.String()) }

// Agent returns the path of the Unix socket on which the instance's forwarder serves its status.
func (m Instance) Agent() string { return filepath.Join(m.Run(), "agent/status.sock") }

// Workload returns the path of the Unix socket of the SPIFFE Workload API. Programs that use the
// API get the path from the environment variable SPIFFE_ENDPOINT_SOCKET.
func (m Instance) Workload() string { return filepath.Join(m.Run(), "workload.sock") }

// Refetch returns the directory in which programs leave requests for activation. To have a
// credential fetched again, a program creates a file there that is named after the need.
func (m Instance) Refetch() string { return filepath.Join("/run", m.Unit("host")) }

// Etc returns the directory with the instance's documents and settings, such as /etc/florete.
func (m Instance) Etc() string { return filepath.Join("/etc", m.String()) }
