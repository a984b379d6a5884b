package outbound

import (
	"cmp"
	"errors"
	"fmt"
	"hash/fnv"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// rules contains the part of the manifest about local processes, in compiled form.
type rules struct {
	trustDomain string
	aliases     document.Aliases
	abroad      map[string]spiffe.Dialable // services of other trust domains by their full names
	callers     caller.Table
	reach       map[serviceKey]document.Reachable
	via         map[serviceKey][]transport.Via   // paths through relays
	ports       map[spiffe.Dialable][]serviceKey // all protocols and ports of a service
	reachAt     map[listenerKey]serviceKey
	socksAt     map[netip.AddrPort]spiffe.ID
	aloneTo     map[serviceKey]bool // services whose listener only one account may use
	aloneAs     map[spiffe.ID]bool  // identities that only one account may use over SOCKS
}

// serviceKey identifies a service, one of its ports if it has several, and a protocol.
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
		aliases:     m.Aliases(),
		abroad:      map[string]spiffe.Dialable{},
		reach:       map[serviceKey]document.Reachable{},
		via:         map[serviceKey][]transport.Via{},
		ports:       map[spiffe.Dialable][]serviceKey{},
		reachAt:     map[listenerKey]serviceKey{},
		socksAt:     map[netip.AddrPort]spiffe.ID{},
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
	return r, problems
}

// paths returns the paths through relays to a service.
func paths(m document.Manifest, x document.Reachable) (all []transport.Via, err error) {
	for _, via := range x.Via {
		first := m.Forwarder.Relays[via.By[0]]
		relay, failed := spiffe.Dial(first.ID)
		if failed != nil {
			err = errors.Join(err, fmt.Errorf("relay %s: %w", via.By[0], failed))
			continue
		}
		all = append(all, transport.Via{
			Relays: via.By, Node: m.Identity.ID, Relay: relay, Addresses: first.Addresses, Label: via.Label, ServerName: x.OpaqueName,
			Meet: m.Forwarder.Meet && len(via.By) == 1 && via.By[0] != m.Host, // a relay need not go around itself
		})
	}
	return all, err
}

// spread orders forwarders for this host. Each host has an order of its own (rendezvous hashing),
// so that a forwarder that comes or goes moves only its share of callers. The pool uses the first
// few.
func spread(host spiffe.ID, endpoints []document.Addresses) []document.Addresses {
	score := func(e document.Addresses) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, host, e)
		// FNV leaves differences at the end of the input in the low bits.
		return bits.Reverse64(h.Sum64())
	}
	return slices.SortedStableFunc(slices.Values(endpoints), func(a, b document.Addresses) int { return cmp.Compare(score(a), score(b)) })
}

// addresses returns the addresses of TCP and UDP listeners.
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
	return tcp, udp
}

// connKey is the part of a local connection or UDP session on which rules decide: the process, its
// identity, and the target.
type connKey struct {
	by caller.Process
	as spiffe.ID
	serviceKey
	socks bool // the listener determined the identity
	doubt doubt
}

// connection is a connection or UDP session, with the rules that were in force when it began. It is
// checked, resolved and dialed by these rules; newer rules can only end it (Server.gate).
type connection struct {
	connKey
	rules *rules
}

// doubt is the reason why the sender of a datagram may not have the uid that was found.
type doubt string

const (
	// notSender means that the kernel marked the datagram with another uid than that of the
	// address's owner.
	notSender doubt = "not-sender"
	// unproven means that several accounts may send to the listener, and the kernel does not mark
	// datagrams.
	unproven doubt = "unproven-sender"
)

// sole reports whether only one account may make such a connection.
func (r *rules) sole(k connKey) bool {
	if k.socks {
		return r.aloneAs[k.as]
	}
	return r.aloneTo[k.serviceKey]
}

// caller checks that the process may act under the connection's identity. Root is no exception.
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

// route returns the ways to a service for an identity.
func (r *rules) route(k serviceKey, as spiffe.ID) transport.Route {
	reach := r.reach[k]
	return transport.Route{Caller: as, Target: k.target, Port: k.port, Endpoints: reach.Endpoints, Via: r.via[k], Transport: reach.Transport}
}

// check returns the reason for which the rules refuse a connection, or nil if they allow it.
func (r *rules) check(k connKey) *refusal {
	if denied := r.caller(k); denied != nil {
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
