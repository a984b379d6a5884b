package document

import (
	"fmt"
	"net/netip"
	"slices"

	"github.com/florete/florete/internal/spiffe"
)

// Entry is a listener of a host for callers that have no identity in the cluster, such as browsers
// on the Internet. They are external callers that have a name in the topology, or unknown ones. The
// forwarder connects them to a service under the identity of the host's node. If several entries
// have the same address, the first entry that matches a caller applies.
type Entry struct {
	Listen   string    `json:"listen"` // host:port, or :port for all addresses
	Protocol Protocol  `json:"protocol,omitempty"`
	ID       spiffe.ID `json:"id"`             // service, which is also in Reach
	Port     string    `json:"port,omitempty"` // as in Reach
	// ServerNames lists the host names for which the entry accepts TLS connections (server name
	// indication, RFC 6066, section 3). The forwarder reads the name from the caller's handshake
	// and does not terminate TLS. If the list is empty, connections may carry any protocol.
	ServerNames []string `json:"serverNames,omitempty"` // sorted
	// From lists the networks from which callers may connect. If the list is empty, callers may
	// connect from everywhere.
	From []netip.Prefix `json:"from,omitempty"` // sorted
	// Outside is the name in the topology for the callers from these networks. It is empty if the
	// callers are strangers.
	Outside string `json:"outside,omitempty"`
	// Caller is the identity that callers must prove with a client certificate. The forwarder then
	// terminates TLS, and carries what is inside. It is zero for callers who prove nothing but their
	// address. Where an entry that matches an address has a Caller, entries without one do not apply
	// to this address.
	Caller spiffe.ID `json:"caller,omitzero"`
	// Announce makes this forwarder tell the caller's address to the forwarder that publishes the
	// service. Set it for services that learn their callers.
	Announce  bool      `json:"announce,omitempty"`
	AccessLog AccessLog `json:"accessLog,omitempty"`
	Limits    Limits    `json:"limits,omitzero"` // for each address, or each /64 network of IPv6
}

// checkEntries checks the entries of the forwarder. Each entry must lead to a service that the node
// may reach.
func (f Forwarder) checkEntries(node spiffe.ID) error {
	for _, e := range f.Entries {
		if err := e.check(f.Reach, node); err != nil {
			return fmt.Errorf("entry %s to %s: %w", e.Listen, e.ID, err)
		}
	}
	return nil
}

func (e Entry) check(reach []Reachable, node spiffe.ID) error {
	if err := checkListen(e.Listen); err != nil {
		return err
	}
	if err := e.Protocol.check(); err != nil {
		return err
	}
	if err := e.AccessLog.check(); err != nil {
		return err
	}
	at := slices.IndexFunc(reach, func(r Reachable) bool { return r.ID == e.ID && r.Port == e.Port && r.Protocol == e.Protocol })
	switch {
	case at < 0:
		return fmt.Errorf("port %q over %q: not in reach", e.Port, e.Protocol)
	case !slices.Contains(reach[at].Callers, node):
		return fmt.Errorf("%s may not reach it", node)
	case e.Protocol == UDP && len(e.ServerNames) > 0:
		return fmt.Errorf("serverNames %q over UDP, want none", e.ServerNames)
	case e.Protocol == UDP && e.Announce:
		return fmt.Errorf("announce over UDP, want TCP")
	case e.Caller.IsZero():
	case e.Caller.Kind() != spiffe.KindOutside || e.Caller.TrustDomain() != node.TrustDomain():
		return fmt.Errorf("caller %s, want an outside caller of %s", e.Caller, node.TrustDomain())
	case e.Protocol == UDP:
		return fmt.Errorf("caller %s over UDP, want TCP", e.Caller)
	case len(e.ServerNames) > 0:
		return fmt.Errorf("caller %s with serverNames %q, want none", e.Caller, e.ServerNames)
	}
	for _, name := range e.ServerNames {
		if !publicName.MatchString(name) {
			return fmt.Errorf("serverName %q, want a lower-case DNS name", name)
		}
	}
	return checkNetworks(e.From)
}
