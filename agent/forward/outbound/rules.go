package outbound

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/florete/florete/agent/forward/acl"
	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/wire"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// rules contains, in compiled form, the part of the manifest that concerns local processes.
type rules struct {
	trustDomain string
	node        spiffe.ID
	aliases     document.Aliases
	abroad      map[string]spiffe.Dialable // services of other trust domains, by their full names
	callers     caller.Table
	reach       map[serviceKey]document.Reachable
	via         map[serviceKey][]transport.Via   // paths through relays
	ports       map[spiffe.Dialable][]serviceKey // all protocols and ports of each service
	reachAt     map[listenerKey]serviceKey
	socksAt     map[netip.AddrPort]spiffe.ID
	entries     map[listenerKey][]entry // for strangers
	aloneTo     map[serviceKey]bool     // whether only one account may use the service's listener
	aloneAs     map[spiffe.ID]bool      // whether only one account may use the identity over SOCKS
}

// serviceKey identifies a protocol of a service, and a port if the service has several.
type serviceKey struct {
	target   spiffe.Dialable
	port     string
	protocol document.Protocol
}

func (k serviceKey) String() string {
	if k.port == "" {
		return k.target.ID().String()
	}
	return k.target.ID().String() + ":" + k.port
}

// listenerKey identifies the local listener of a service.
type listenerKey struct {
	addr     netip.AddrPort
	protocol document.Protocol
}

func compile(m document.Manifest) (*rules, []error) {
	r := &rules{
		trustDomain: m.TrustDomain,
		node:        m.Identity.ID,
		aliases:     m.Aliases(),
		abroad:      map[string]spiffe.Dialable{},
		reach:       map[serviceKey]document.Reachable{},
		via:         map[serviceKey][]transport.Via{},
		ports:       map[spiffe.Dialable][]serviceKey{},
		reachAt:     map[listenerKey]serviceKey{},
		socksAt:     map[netip.AddrPort]spiffe.ID{},
		entries:     map[listenerKey][]entry{},
		aloneTo:     map[serviceKey]bool{},
		aloneAs:     map[spiffe.ID]bool{},
	}
	callers, problems := caller.NewTable(m.Forwarder.Callers)
	r.callers = callers
	for _, x := range m.Forwarder.Reach {
		target, err := spiffe.Dial(x.ID)
		if err != nil {
			problems = append(problems, fmt.Errorf("reach: %w", err))
			continue
		}
		x.Endpoints = spread(m.Identity.ID, x.Endpoints)
		k := serviceKey{target, x.Port, x.Protocol}
		r.reach[k] = x
		if len(x.Via) > 0 {
			via, err := paths(m, x)
			if err != nil {
				problems = append(problems, fmt.Errorf("reach %s: %w", x.ID, err))
			}
			r.via[k] = via
		}
		r.ports[target] = append(r.ports[target], k)
		r.reachAt[listenerKey{x.Listen, x.Protocol}] = k
		if x.ID.TrustDomain() != m.TrustDomain {
			r.abroad[spiffe.Render(target)] = target
		}
		r.aloneTo[k] = len(callers.UIDs(x.Callers, false)) == 1
	}
	for _, x := range m.Forwarder.SOCKS {
		r.socksAt[x.Listen] = x.ID
		r.aloneAs[x.ID] = len(callers.UIDs([]spiffe.ID{x.ID}, true)) == 1
	}
	for _, x := range m.Forwarder.Entries {
		target, err := spiffe.Dial(x.ID)
		if err != nil {
			problems = append(problems, fmt.Errorf("entry %s: %w", x.Listen, err))
			continue
		}
		addr, err := listenerAddress(x.Listen)
		if err != nil {
			problems = append(problems, fmt.Errorf("entry: %w", err))
			continue
		}
		at := listenerKey{addr, x.Protocol}
		r.entries[at] = append(r.entries[at], entry{x, serviceKey{target, x.Port, x.Protocol}})
	}
	return r, problems
}

// paths returns the paths through relays that lead to a service.
func paths(m document.Manifest, x document.Reachable) (all []transport.Via, err error) {
	for _, via := range x.Via {
		first := m.Forwarder.Relays[via.By[0]]
		relay, failed := spiffe.Dial(first.ID)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("relay %s: %w", via.By[0], failed))
			continue
		}
		all = append(all, transport.Via{
			Relays: via.By, Relay: transport.ToRelay(m.Identity.ID, relay, first), Label: via.Label, ServerName: x.OpaqueName,
			Meet: m.Forwarder.Meet && len(via.By) == 1 && via.By[0] != m.Host, // a relay needs no way around itself
		})
	}
	return all, err
}

// spread returns the forwarders of a service in an order of this host's own (rendezvous hashing).
// The pool uses only the first few. Because each host has a different order, callers spread over
// all forwarders. A forwarder that comes or goes moves only its share of the callers.
func spread(host spiffe.ID, endpoints []document.Addresses) []document.Addresses {
	score := func(e document.Addresses) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, host, e)
		// FNV puts differences at the end of the input into the low bits, so the bits are reversed.
		return bits.Reverse64(h.Sum64())
	}
	return slices.SortedStableFunc(slices.Values(endpoints), func(a, b document.Addresses) int { return cmp.Compare(score(a), score(b)) })
}

// addresses returns the addresses of all TCP and of all UDP listeners.
func (r *rules) addresses() (tcp, udp map[netip.AddrPort]bool) {
	tcp, udp = map[netip.AddrPort]bool{}, map[netip.AddrPort]bool{}
	for a := range r.reachAt {
		if a.protocol == document.UDP {
			udp[a.addr] = true
		} else {
			tcp[a.addr] = true
		}
	}
	for a := range r.socksAt {
		tcp[a] = true
	}
	for a := range r.entries {
		if a.protocol == document.UDP {
			udp[a.addr] = true
		} else {
			tcp[a.addr] = true
		}
	}
	return tcp, udp
}

// connKey contains what the rules need for a decision about a local connection or UDP session: the
// process or the stranger, its identity, and the target.
type connKey struct {
	by       caller.Process // zero for a stranger
	stranger stranger
	as       spiffe.ID // of a stranger, the node
	serviceKey
	socks bool // the SOCKS5 listener determined the identity
	doubt doubt
}

// connection is a local connection or UDP session, with the rules that were in force when it began.
// These rules determine its target. Newer rules can only end the connection (Server.enforcer).
type connection struct {
	connKey
	rules *rules

	origin   wire.Origin // addresses of a stranger's connection
	announce bool        // tell the publishing forwarder the origin
	limits   *acl.Share  // of a stranger; may be nil
	release  func()      // ends the count of a stranger's connection; may be nil
	log      ended       // may be nil
}

// doubt is the reason why it is not certain which account has sent a datagram.
type doubt string

const (
	// notSender means that the kernel marked the datagram with one uid, but another account owns
	// the source address.
	notSender doubt = "not-sender"
	// unproven means that the kernel does not mark datagrams, and several accounts may send to the
	// listener.
	unproven doubt = "unproven-sender"
)

// sole reports whether only one account may make a connection with this key. The sender of a
// datagram then needs no mark, because its account is certain.
func (r *rules) sole(k connKey) bool {
	if k.socks {
		return r.aloneAs[k.as]
	}
	return r.aloneTo[k.serviceKey]
}

// caller checks whether the process may act under the identity of the connection. The check applies
// to root like to any other account.
func (r *rules) caller(k connKey) *refusal {
	id, known := r.callers.Identity(k.by)
	switch {
	case k.socks && !r.callers.MayAct(k.by, k.as):
		return &refusal{becauseNotCaller, fmt.Sprintf("uid %d is not among the callers of %s", k.by.UID, k.as)}
	case !k.socks && !known:
		return &refusal{becauseUnknownCaller, fmt.Sprintf("uid %d is no caller in the manifest", k.by.UID)}
	case !k.socks && id != k.as:
		return &refusal{becauseNotCaller, fmt.Sprintf("uid %d acts as %s now", k.by.UID, id)}
	}
	return nil
}

// route returns the endpoints of a service and the paths to it, for connections under an identity.
func (r *rules) route(k serviceKey, as spiffe.ID) transport.Route {
	reach := r.reach[k]
	return transport.Route{Caller: as, Target: k.target, Port: k.port, Endpoints: reach.Endpoints, Via: r.via[k], Transport: reach.Transport}
}

// check applies the rules to a connection. It returns nil if they allow the connection, and
// otherwise the reason for the refusal.
func (r *rules) check(k connKey) *refusal {
	if k.stranger.from.IsValid() {
		e, denied := r.enter(k.stranger)
		if denied == nil && (e.service != k.serviceKey || k.as != r.node) {
			denied = &refusal{becauseNotAdmitted, "the entry leads to another service now"}
		}
		if denied != nil {
			return denied
		}
	} else if denied := r.caller(k); denied != nil {
		return denied
	}
	reach, ok := r.reach[k.serviceKey]
	if !ok {
		over := func(x serviceKey) bool { return x.port == k.port && x.protocol != k.protocol }
		if slices.ContainsFunc(r.ports[k.target], over) {
			return &refusal{becauseNotReachable, fmt.Sprintf("%s is not reached over %s", k, cmp.Or(k.protocol, "tcp"))}
		}
		return &refusal{becauseNotReachable, fmt.Sprintf("%s is not reachable from this host", k)}
	}
	if !slices.Contains(reach.Callers, k.as) {
		return &refusal{becauseNotReachable, fmt.Sprintf("%s may not reach %s", k.as, k.serviceKey)}
	}
	switch k.doubt {
	case notSender:
		return &refusal{string(k.doubt), "another account has sent what comes from its address"}
	case unproven:
		return &refusal{string(k.doubt), "several accounts may send there, and nothing proves which of them did: flor guard does"}
	}
	return nil
}
