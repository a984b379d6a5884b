package upstream

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/florete/florete/agent/forward/caller"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// ruleset returns the table of a host in the language of nft(8). The ruleset replaces the existing
// table. Each error names an account that the host does not have; such an account gets no access.
func ruleset(table string, forwarder uint32, f document.Forwarder) (string, []error) {
	services, errs := upstreams(forwarder, f.Publish)
	senders, problems := datagrams(f)
	var b strings.Builder
	fmt.Fprintf(&b, "table inet %s\ndelete table inet %[1]s\ntable inet %[1]s {\n\tchain output {\n", table)
	b.WriteString("\t\ttype filter hook output priority 300; policy accept;\n\t\toifname != \"lo\" accept\n")
	for _, rule := range slices.Concat(services, senders) {
		b.WriteString("\t\t" + rule + "\n")
	}
	b.WriteString("\t}\n}\n")
	return b.String(), append(errs, problems...)
}

// upstreams returns the rules that protect the upstreams of published services. Only the forwarder,
// root and the service's own account may connect to an upstream or send from its address.
func upstreams(forwarder uint32, published []document.Published) (rules []string, errs []error) {
	type at struct {
		addr     netip.AddrPort
		protocol string
	}
	allowed := map[at][]Range{}
	for _, p := range published {
		owner, err := NewOwner(p.User)
		if err != nil {
			errs = append(errs, fmt.Errorf("upstream of %s: %w", p.ID, err))
		}
		for _, addr := range Loopback(p) {
			a := at{addr, "tcp"}
			if p.Protocol == document.UDP {
				a.protocol = "udp"
			}
			allowed[a] = append(allowed[a], owner.UIDs(forwarder)...)
		}
	}
	for a, uids := range allowed {
		to, others := matchAddress(a.addr, "daddr", a.protocol, "dport"), "meta skuid != "+rangeSet(uids)
		if a.protocol == "tcp" {
			rules = append(rules, fmt.Sprintf("%s tcp flags & (syn | ack) == syn %s reject with tcp reset", to, others))
			continue
		}
		from := matchAddress(a.addr, "saddr", a.protocol, "sport")
		rules = append(rules, fmt.Sprintf("%s %s reject", to, others), fmt.Sprintf("%s %s drop", from, others))
	}
	slices.Sort(rules)
	return rules, errs
}

// datagrams returns the rules that record the sender of each datagram to a local listener. A
// datagram is marked with the account of its sender if that account may use the listener. All other
// datagrams get one common mark.
func datagrams(f document.Forwarder) (rules []string, errs []error) {
	callers, errs := caller.NewTable(f.Callers)
	for _, r := range f.Reach {
		if r.Protocol == document.UDP {
			rules = append(rules, markSenders(matchAddress(r.Listen, "daddr", "udp", "dport"), callers.UIDs(r.Acting(), false))...)
		}
	}
	// Each SOCKS5 UDP ASSOCIATE uses its own port.
	for _, s := range f.SOCKS {
		rules = append(rules, markSenders(addressFamily(s.Listen.Addr(), "daddr")+" meta l4proto udp", callers.UIDs([]spiffe.ID{s.ID}, true))...)
	}
	return rules, errs
}

// markSenders returns the rules that mark datagrams to an address with the account of their sender.
// There is one rule for each account in uids. An account whose uid does not fit into a mark is left
// out.
func markSenders(to string, uids []uint32) (rules []string) {
	marks := make([]string, 0, len(uids))
	for _, uid := range uids {
		if m, ok := caller.Mark(uid); ok {
			marks = append(marks, fmt.Sprintf("%d : %#x", uid, m))
		}
	}
	others := ""
	if len(uids) > 0 {
		others = " meta skuid != " + rangeSet(singleIDs(uids))
	}
	rules = append(rules, fmt.Sprintf("%s%s meta mark set %#x accept", to, others, caller.MarkOthers))
	if len(marks) > 0 {
		rules = append(rules, fmt.Sprintf("%s meta mark set meta skuid map { %s } accept", to, strings.Join(marks, ", ")))
	}
	return rules
}

func singleIDs(uids []uint32) (ranges []Range) {
	for _, uid := range uids {
		ranges = append(ranges, Range{First: uid, Last: uid})
	}
	return ranges
}

func matchAddress(a netip.AddrPort, address, protocol, port string) string {
	return fmt.Sprintf("%s %s %s %d", addressFamily(a.Addr(), address), protocol, port, a.Port())
}

func addressFamily(a netip.Addr, address string) string {
	if a.Is4() {
		return fmt.Sprintf("ip %s %s", address, a)
	}
	return fmt.Sprintf("ip6 %s %s", address, a)
}

// rangeSet formats uids as a set for nft, which does not accept overlapping ranges.
func rangeSet(uids []Range) string {
	uids = slices.Clone(uids)
	slices.SortFunc(uids, func(a, b Range) int { return int(int64(a.First) - int64(b.First)) })
	var merged []Range
	for _, r := range uids {
		if n := len(merged); n > 0 && uint64(r.First) <= uint64(merged[n-1].Last)+1 {
			merged[n-1].Last = max(merged[n-1].Last, r.Last)
			continue
		}
		merged = append(merged, r)
	}
	var parts []string
	for _, r := range merged {
		if r.First == r.Last {
			parts = append(parts, fmt.Sprint(r.First))
		} else {
			parts = append(parts, fmt.Sprintf("%d-%d", r.First, r.Last))
		}
	}
	return "{ " + strings.Join(parts, ", ") + " }"
}
