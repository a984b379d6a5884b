package hostdir

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// Instance names one of several clusters that a host is a member of, hosts.<name>.instance
// of its topology. Each has directories, units and accounts of its own, called
// florete_<instance>; the zero value, a host's only instance, is called florete.
type Instance string

var instance = regexp.MustCompile("^(" + InstancePattern + ")?$")

// ParseInstance returns the instance of this name, "" for a host's only one.
func ParseInstance(name string) (Instance, error) {
	if !instance.MatchString(name) {
		return "", fmt.Errorf("instance %q: want a lower-case letter, then letters, digits and hyphens, 14 characters at most", name)
	}
	return Instance(name), nil
}

// String is what everything of the instance is called.
func (m Instance) String() string {
	if m == "" {
		return Prefix
	}
	return Prefix + "_" + string(m)
}

// Unit is one of its systemd units or accounts, florete-<name>.
func (m Instance) Unit(name string) string { return m.String() + "-" + name }

// Program is how operators call one of its programs, flor_<instance>: by that name
// it is about this instance.
func (m Instance) Program(name string) string {
	return name + strings.TrimPrefix(m.String(), Prefix)
}

// State is where activation keeps what the host has, /var/lib/florete.
func (m Instance) State() Layout { return Layout(filepath.Join("/var/lib", m.String())) }

// Run is where sockets are while the host runs, /run/florete.
func (m Instance) Run() string { return filepath.Join("/run", m.String()) }

// Agent is the socket where the forwarder answers about its status.
func (m Instance) Agent() string { return filepath.Join(m.Run(), "agent/status.sock") }

// Workload is the socket of the SPIFFE Workload API, SPIFFE_ENDPOINT_SOCKET.
func (m Instance) Workload() string { return filepath.Join(m.Run(), "workload.sock") }

// Refetch is the directory of requests to fetch a need again: a file named after it.
func (m Instance) Refetch() string { return filepath.Join("/run", m.Unit("host")) }

// Etc is where documents and settings are, /etc/florete.
func (m Instance) Etc() string { return filepath.Join("/etc", m.String()) }
