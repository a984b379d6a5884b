package outbound

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// rules are the manifest's part about local processes, compiled.
type rules struct {
	trustDomain string
	aliases     document.Aliases
	abroad      map[string]spiffe.Dialable // services of other trust domains, by their whole names
	callers     caller.Table
	reach       map[serviceKey]document.Reachable
	ports       map[spiffe.Dialable][]serviceKey // all ways to a service
	reachAt     map[listenerKey]serviceKey
	socksAt     map[netip.AddrPort]spiffe.ID
	aloneTo     map[serviceKey]bool // services that one account reaches at the listener
	aloneAs     map[spiffe.ID]bool  // identities that one account acts under over SOCKS
}

// serviceKey is what is reached: a service, where it has several ports one of them by its name,
// over a protocol.
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

// listenerKey is a local listener of a service.
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

// spread orders forwarders as this host uses them: each host has an order of its own
// (rendezvous hashing), so that one that comes or goes moves only its share of callers.
// Of many, the pool uses the first ones.
func spread(host spiffe.ID, endpoints []document.Addresses) []document.Addresses {
	score := func(e document.Addresses) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, host, e)
		// FNV leaves what differs at the end in the low bits.
		return bits.Reverse64(h.Sum64())
	}
	return slices.SortedStableFunc(slices.Values(endpoints), func(a, b document.Addresses) int { return cmp.Compare(score(a), score(b)) })
}

// addresses are where TCP listens, and where UDP does.
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

// connKey is what rules decide about one connection, or UDP session, of a local process:
// by a process, as an identity, to a target.
type connKey struct {
	by caller.Process
	as spiffe.ID
	serviceKey
	socks bool // the listener decided the identity
	doubt doubt
}

// connection is one connection, or UDP session, with the rules that were in force when it
// came: it is checked, resolved and dialled by them. Newer ones only end it (Server.gate).
type connection struct {
	connKey
	rules *rules
}

// doubt is why the uid may not be who sent a datagram.
type doubt string

const (
	// notSender: the kernel has marked it with another uid than that of the address's owner.
	notSender doubt = "not-sender"
	// unproven: several accounts may send there, and the kernel does not mark who does.
	unproven doubt = "unproven-sender"
)

// sole reports whether one account alone may send what the connection is.
func (r *rules) sole(k connKey) bool {
	if k.socks {
		return r.aloneAs[k.as]
	}
	return r.aloneTo[k.serviceKey]
}

// caller checks that the process may act under the connection's identity. Root is no
// exception.
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

// check reports whether the rules let a connection through.
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
