package outbound

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"math/bits"
	"net/netip"
	"slices"

	"github.com/florete/florete"
	"github.com/florete/florete/agent/forward/caller"
)

// rules are the manifest's part about local processes, compiled.
type rules struct {
	trustDomain string
	callers     caller.Table
	reach       map[florete.ID]florete.Reachable
	reachAt     map[netip.AddrPort]florete.Reachable // of either protocol
	socksAt     map[netip.AddrPort]florete.ID
	aloneTo     map[florete.ID]bool // services that one account reaches at the listener
	aloneAs     map[florete.ID]bool // identities that one account acts under over SOCKS
}

func compile(m florete.Manifest) (*rules, []error) {
	r := &rules{
		trustDomain: m.TrustDomain,
		reach:       map[florete.ID]florete.Reachable{},
		reachAt:     map[netip.AddrPort]florete.Reachable{},
		socksAt:     map[netip.AddrPort]florete.ID{},
		aloneTo:     map[florete.ID]bool{},
		aloneAs:     map[florete.ID]bool{},
	}
	callers, problems := caller.NewTable(m.Forwarder.Callers)
	r.callers = callers
	for _, x := range m.Forwarder.Reach {
		if _, err := florete.Dial(x.ID); err != nil {
			problems = append(problems, fmt.Errorf("reach: %w", err))
			continue
		}
		x.Endpoints = spread(m.Identity.ID, x.Endpoints)
		r.reach[x.ID] = x
		r.reachAt[x.Listen] = x
		r.aloneTo[x.ID] = len(callers.UIDs(x.Callers, false)) == 1
	}
	for _, x := range m.Forwarder.SOCKS {
		r.socksAt[x.Listen] = x.ID
		r.aloneAs[x.ID] = len(callers.UIDs([]florete.ID{x.ID}, true)) == 1
	}
	return r, problems
}

// spread orders forwarders as this host tries them: each host has an order of its own
// (rendezvous hashing), so that one that comes or goes moves only its share of callers.
func spread(host florete.ID, endpoints []florete.Addresses) []florete.Addresses {
	score := func(e florete.Addresses) uint64 {
		h := fnv.New64a()
		fmt.Fprint(h, host, e)
		// FNV leaves what differs at the end in the low bits.
		return bits.Reverse64(h.Sum64())
	}
	return slices.SortedStableFunc(slices.Values(endpoints), func(a, b florete.Addresses) int { return cmp.Compare(score(a), score(b)) })
}

// addresses are where TCP listens, and where UDP does.
func (r *rules) addresses() (tcp, udp map[netip.AddrPort]bool) {
	tcp, udp = map[netip.AddrPort]bool{}, map[netip.AddrPort]bool{}
	for a, reach := range r.reachAt {
		if reach.Protocol == florete.UDP {
			udp[a] = true
		} else {
			tcp[a] = true
		}
	}
	for a := range r.socksAt {
		tcp[a] = true
	}
	return tcp, udp
}

// flow is one connection, or UDP flow, of a local process: by uid, as an identity, to
// a target.
type flow struct {
	uid      uint32
	as       florete.ID
	target   florete.ID
	protocol florete.Protocol
	socks    bool // the listener decided the identity
	doubt    doubt
}

// doubt is why the uid may not be who sent a datagram.
type doubt string

const (
	// notSender: the kernel has marked it with another uid than that of the address's owner.
	notSender doubt = "not-sender"
	// unproven: several accounts may send there, and the kernel does not mark who does.
	unproven doubt = "unproven-sender"
)

// sole tells whether one account alone may send what the flow is.
func (r *rules) sole(f flow) bool {
	if f.socks {
		return r.aloneAs[f.as]
	}
	return r.aloneTo[f.target]
}

// refusal says why a local process is not let through.
type refusal struct {
	reason string
	detail string
}

// caller checks that the process may act under the flow's identity. Root is no
// exception.
func (r *rules) caller(f flow) *refusal {
	id, known := r.callers.Identity(f.uid)
	switch {
	case f.socks && !r.callers.MayAct(f.uid, f.as):
		return &refusal{"not-caller", fmt.Sprintf("uid %d is not among the callers of %s", f.uid, f.as)}
	case !f.socks && !known:
		return &refusal{"unknown-caller", fmt.Sprintf("uid %d is no caller in the manifest", f.uid)}
	case !f.socks && id != f.as:
		return &refusal{"not-caller", fmt.Sprintf("uid %d acts as %s now", f.uid, id)}
	}
	return nil
}

// check tells whether the rules let the flow through.
func (r *rules) check(f flow) *refusal {
	if no := r.caller(f); no != nil {
		return no
	}
	reach, ok := r.reach[f.target]
	if !ok {
		return &refusal{"not-reachable", fmt.Sprintf("%s is not reachable from this host", f.target)}
	}
	if !slices.Contains(reach.Callers, f.as) {
		return &refusal{"not-reachable", fmt.Sprintf("%s may not reach %s", f.as, f.target)}
	}
	if reach.Protocol != f.protocol {
		return &refusal{"not-reachable", fmt.Sprintf("%s is not reached over %s", f.target, cmp.Or(f.protocol, "tcp"))}
	}
	switch f.doubt {
	case notSender:
		return &refusal{string(f.doubt), "another account has sent what comes from its address"}
	case unproven:
		return &refusal{string(f.doubt), "several accounts may send there, and nothing proves which of them did: flor guard does"}
	}
	return nil
}
