// Package remote opens sessions at other machines. It lists the services that an account of this
// host may open over SSH, RDP or VNC, and starts the client program for one of them. The client
// connects to the forwarder of this host, which proves the identity of the account and encrypts
// the connection.
package remote

import (
	"cmp"
	"fmt"
	"io"
	"net/netip"
	"slices"
	"strings"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/agent/ping"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/terminal"
)

// Service is a service at which people open sessions.
type Service struct {
	Name     string          `json:"name"` // short name, such as "desk" or "desk.forge"
	ID       spiffe.ID       `json:"id"`
	Protocol document.Remote `json:"protocol"`
	Host     string          `json:"host,omitempty"` // host that publishes it; empty if several may
	At       string          `json:"at"`             // DNS name
	Listen   netip.AddrPort  `json:"listen"`         // local listener of the forwarder
	Callers  []spiffe.ID     `json:"callers"`        // identities of this host that may connect

	Recorded bool `json:"recorded,omitempty"` // its hosts record the sessions
}

// Account is a Unix account of this host. Its programs connect with the account's SPIFFE ID.
type Account struct {
	UID uint32
	as  spiffe.ID // zero if it acts as nobody
}

// NewAccount returns the account with a uid.
func NewAccount(m document.Manifest, uid uint32) Account {
	callers, _ := caller.NewTable(m.Forwarder.Callers) // an account that cannot be found is not this one
	as, _ := callers.Identity(caller.Process{UID: uid})
	return Account{uid, as}
}

// mayOpen reports whether the forwarder connects the account to a service.
func (a Account) mayOpen(s Service) bool { return !a.as.IsZero() && slices.Contains(s.Callers, a.as) }

// List returns the services of a manifest that an account may open, sorted by name.
func List(m document.Manifest, a Account) []Service {
	return slices.DeleteFunc(services(m), func(s Service) bool { return !a.mayOpen(s) })
}

// services returns all services of a manifest at which people open sessions, sorted by name.
func services(m document.Manifest) []Service {
	all := []Service{}
	for _, r := range m.Forwarder.Reach {
		d, err := spiffe.Dial(r.ID)
		if err != nil || r.Remote == document.NotRemote {
			continue
		}
		at := spiffe.Render(d)
		all = append(all, Service{
			Name: strings.TrimSuffix(at, "."+m.TrustDomain+spiffe.Suffix), ID: r.ID, Protocol: r.Remote, Host: r.ID.Node(),
			At: at, Listen: r.Listen, Callers: r.Acting(),
			Recorded: r.Recorded,
		})
	}
	slices.SortFunc(all, func(a, b Service) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

// Find returns the service with a name that an account may open. The name is short, such as desk or
// desk.forge, complete, or an alias. If a service of this name runs on each of several hosts, Find
// wants the host too.
func Find(m document.Manifest, a Account, name string) (Service, error) {
	all := services(m)
	var found []Service
	id := named(m, name)
	for _, s := range all {
		if s.ID == id {
			found = []Service{s}
			break
		}
		if s.ID.Name() == name {
			found = append(found, s)
		}
	}
	may := slices.DeleteFunc(slices.Clone(found), func(s Service) bool { return !a.mayOpen(s) })
	switch {
	case len(may) == 1:
		return may[0], nil
	case len(may) > 1:
		return Service{}, fmt.Errorf("%s is on several hosts, want one of %s", name, strings.Join(names(may), ", "))
	case a.as.IsZero():
		return Service{}, fmt.Errorf("the account with uid %d acts as nobody on host %s: add the user to hosts.%[2]s.users or hosts.%[2]s.callers in the topology", a.UID, m.Host)
	case len(found) > 0:
		return Service{}, fmt.Errorf("%s may not open %s: florctl explain %s %[2]s", a.as.ShortIn(m.TrustDomain), found[0].Name, a.as.Name())
	case reaches(m, id):
		return Service{}, fmt.Errorf("%s is no service of protocol ssh, rdp or vnc: write services.%s.protocol in the topology", name, id.Name())
	}
	return Service{}, fmt.Errorf("no service %q: %s", name, remedy(m, a, name))
}

// named returns the ID of the service that a name stands for, or the zero ID.
func named(m document.Manifest, name string) spiffe.ID {
	for _, n := range []string{name, name + "." + m.TrustDomain + spiffe.Suffix} {
		if d, ok := m.Aliases().Resolve(n); ok {
			return d.ID()
		}
	}
	d, err := ping.Find(name, m.TrustDomain)
	if err != nil {
		return spiffe.ID{}
	}
	return d.ID()
}

func reaches(m document.Manifest, id spiffe.ID) bool {
	return !id.IsZero() && slices.ContainsFunc(m.Forwarder.Reach, func(r document.Reachable) bool { return r.ID == id })
}

func remedy(m document.Manifest, a Account, name string) string {
	list := List(m, a)
	may := names(list)
	known := may
	for _, s := range list {
		known = append(known, s.ID.Name())
	}
	if near := terminal.Suggest(name, known); near != "" {
		return fmt.Sprintf("did you mean %s?", near)
	}
	if len(may) == 0 {
		return fmt.Sprintf("%s may open none: florctl explain %s %s", a.as.ShortIn(m.TrustDomain), a.as.Name(), name)
	}
	return "want one of " + strings.Join(may, ", ")
}

func names(all []Service) (names []string) {
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

// Print writes services as a table.
func Print(w io.Writer, all []Service) error {
	t := terminal.NewTable(w, "NAME", "PROTOCOL", "HOST", "AT")
	for _, s := range all {
		protocol := string(s.Protocol)
		if s.Recorded {
			protocol += ", recorded"
		}
		t.Row(s.Name, protocol, cmp.Or(s.Host, "any"), fmt.Sprintf("%s:%d", s.At, s.Listen.Port()))
	}
	return t.Flush()
}
