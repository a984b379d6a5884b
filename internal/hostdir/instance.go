package hostdir

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// Instance names one of several clusters of which a host is a member, hosts.<name>.instance in its
// topology. Each instance has its own directories, units and accounts, named florete_<instance>.
// The zero value is the only instance of a host and is named florete.
type Instance string

var instance = regexp.MustCompile("^(" + InstancePattern + ")?$")

// ParseInstance returns the instance with this name; "" is the only instance of a host.
func ParseInstance(name string) (Instance, error) {
	if !instance.MatchString(name) {
		return "", fmt.Errorf("instance %q: want a lower-case letter, then letters, digits and hyphens, 14 characters at most", name)
	}
	return Instance(name), nil
}

// String returns the common prefix of the instance's names.
func (m Instance) String() string {
	if m == "" {
		return Prefix
	}
	return Prefix + "_" + string(m)
}

// Unit returns the name of one of its systemd units or accounts, such as florete-<name>.
func (m Instance) Unit(name string) string { return m.String() + "-" + name }

// Program returns the name under which operators call one of its programs, such as flor_<instance>.
// Called by that name, a program acts on this instance.
func (m Instance) Program(name string) string {
	return name + strings.TrimPrefix(m.String(), Prefix)
}

// State returns the directory of activation's state, /var/lib/florete.
func (m Instance) State() Layout { return Layout(filepath.Join("/var/lib", m.String())) }

// Run returns the directory of sockets, /run/florete.
func (m Instance) Run() string { return filepath.Join("/run", m.String()) }

// Agent returns the path of the forwarder's status socket.
func (m Instance) Agent() string { return filepath.Join(m.Run(), "agent/status.sock") }

// Workload returns the path of the SPIFFE Workload API's socket, SPIFFE_ENDPOINT_SOCKET.
func (m Instance) Workload() string { return filepath.Join(m.Run(), "workload.sock") }

// Refetch returns the directory of requests to fetch needs again. A request is a file named after
// the need.
func (m Instance) Refetch() string { return filepath.Join("/run", m.Unit("host")) }

// Etc returns the directory of documents and settings, /etc/florete.
func (m Instance) Etc() string { return filepath.Join("/etc", m.String()) }
