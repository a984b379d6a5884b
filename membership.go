package florete

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strings"
)

// Membership names one of several clusters that a host is a member of, hosts.<name>.membership
// of its topology. Each has directories, units and accounts of its own, called
// florete_<membership>; the zero value, a host's only membership, is called florete.
// nix/units/parts.nix says the same.
type Membership string

var membership = regexp.MustCompile(`^([a-z]([a-z0-9-]{0,12}[a-z0-9])?)?$`)

// ParseMembership returns the membership of this name, "" for a host's only one.
func ParseMembership(name string) (Membership, error) {
	if !membership.MatchString(name) {
		return "", fmt.Errorf("membership %q: want a lower-case letter, then letters, digits and hyphens, 14 characters at most", name)
	}
	return Membership(name), nil
}

// String is what everything of the membership is called.
func (m Membership) String() string {
	if m == "" {
		return "florete"
	}
	return "florete_" + string(m)
}

// Unit is one of its systemd units or accounts, florete-<name>.
func (m Membership) Unit(name string) string { return m.String() + "-" + name }

// Program is how operators call one of its programs, flor_<membership>: by that name
// it is about this membership.
func (m Membership) Program(name string) string {
	return name + strings.TrimPrefix(m.String(), "florete")
}

// State is where activation keeps what the host has, /var/lib/florete.
func (m Membership) State() Layout { return Layout(filepath.Join("/var/lib", m.String())) }

// Run is where sockets are while the host runs, /run/florete.
func (m Membership) Run() string { return filepath.Join("/run", m.String()) }

// Agent is the socket where the forwarder answers about its status.
func (m Membership) Agent() string { return filepath.Join(m.Run(), "agent/status.sock") }

// Rotate is the directory where activation is told what to ask for again.
func (m Membership) Rotate() string { return filepath.Join("/run", m.Unit("host")) }

// Etc is where documents and settings are, /etc/florete.
func (m Membership) Etc() string { return filepath.Join("/etc", m.String()) }
