package doctor

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"

	"github.com/florete/florete/agent/forward/transport"
	"github.com/florete/florete/agent/forward/usage"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
)

// names checks that the names of providers and forwarders resolve. If hosts(5) is maintained, names
// also checks that the names of services resolve to the local listeners of this host.
func (h *host) names(ctx context.Context) (string, []Finding) {
	var found []Finding
	looked := map[string]bool{}
	look := func(addresses document.Addresses) {
		for _, a := range addresses {
			name, literal := isAddress(a)
			if literal || looked[name] {
				continue
			}
			looked[name] = true
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			if _, err := net.DefaultResolver.LookupHost(ctx, name); err != nil {
				found = append(found, do(err.Error(), h.resolve(name)))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.manifest.Providers)) {
		for _, kind := range slices.Sorted(maps.Keys(h.manifest.Providers[name])) {
			look(h.manifest.Providers[name][kind].Addresses)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.manifest.Forwarder.Relays)) {
		look(h.manifest.Forwarder.Relays[name].Addresses)
	}
	listeners := map[string]string{}
	for _, r := range h.manifest.Forwarder.Reach {
		for _, e := range r.Endpoints {
			look(e)
		}
		if d, err := spiffe.Dial(r.ID); err == nil {
			listeners[spiffe.Render(d)] = r.Listen.Addr().String()
		}
	}
	found = append(found, h.local(ctx, listeners)...)
	found = append(found, loopback(listeners)...)
	return fmt.Sprintf("%d to resolve, %d local", len(looked), len(listeners)), found
}

// local checks the names of local listeners in hosts(5). It reports an entry with a wrong address
// and a name without an entry. The use of hosts(5) is optional, so local reports no missing entry
// if no name has one, unless the unit that maintains the file is installed.
func (h *host) local(ctx context.Context, listeners map[string]string) []Finding {
	entries, found := h.entries(listeners)
	var missing []string
	for name := range listeners {
		if !slices.Contains(entries, name) {
			missing = append(missing, name)
		}
	}
	slices.Sort(missing)
	problem := fmt.Sprintf("%s does not have %s", h.Hosts, strings.Join(missing, ", "))
	listed, err := h.Units(ctx, []string{h.hostsFileUnit()})
	kept := err == nil && len(listed) == 1 && listed[0].Load == "loaded"
	switch {
	case len(missing) == 0:
	case kept:
		found = append(found, fix(problem, h.restart("hosts-file")))
	case len(entries) > 0:
		found = append(found, do(problem, fmt.Sprintf("deploy %s: names come with its system", h.manifest.Host)))
	}
	return found
}

// loopback reports a local listener whose address was removed from this host. No program can
// connect to such a listener, but the forwarder notices the removal only when it starts again.
func loopback(listeners map[string]string) []Finding {
	for _, name := range slices.Sorted(maps.Keys(listeners)) {
		at, err := netip.ParseAddr(listeners[name])
		if err != nil || assigned(at) {
			continue
		}
		network := netip.PrefixFrom(at, at.BitLen())
		if at.Is4() && at.IsLoopback() {
			network = netip.MustParsePrefix("127.0.0.1/8")
		}
		return []Finding{fix(
			fmt.Sprintf("this host does not have the address %s, at which it listens for %s: nothing reaches that", at, name),
			fmt.Sprintf("ip link set lo up && ip address replace %s dev lo", network))}
	}
	return nil
}

// assigned reports whether a network interface of this host has the address.
func assigned(at netip.Addr) bool {
	l, err := net.ListenTCP("tcp", net.TCPAddrFromAddrPort(netip.AddrPortFrom(at, 0)))
	if err == nil {
		l.Close()
	}
	return !errors.Is(err, syscall.EADDRNOTAVAIL)
}

// hostsFileUnit returns the name of the unit that maintains hosts(5). The unit is not used on
// systems that write the file themselves.
func (h *host) hostsFileUnit() string { return h.Instance.Unit("hosts-file.service") }

// resolve returns the remedy for a host name that does not resolve.
func (h *host) resolve(name string) string {
	return fmt.Sprintf("write ADDRESS %s into %s, or its IP address into the flake", name, h.Hosts)
}

// entries reads hosts(5). It returns the listeners' names that have an entry, and a finding for
// each wrong entry.
func (h *host) entries(listeners map[string]string) (names []string, found []Finding) {
	f, err := os.Open(h.Hosts)
	if err != nil {
		return nil, nil // the file is optional
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		text, _, _ := strings.Cut(lines.Text(), "#")
		words := strings.Fields(text)
		for i, name := range words {
			want, ok := listeners[name]
			if i == 0 || !ok {
				continue
			}
			names = append(names, name)
			if words[0] != want {
				found = append(found, fix(
					fmt.Sprintf("%s has %s for %s, its listener is at %s", h.Hosts, words[0], name, want),
					fmt.Sprintf("sed -i 's/^%s\\(.*%s\\)/%s\\1/' %s", quoted(words[0]), quoted(name), want, h.Hosts)))
			}
		}
	}
	return names, found
}

// quoted escapes the dots of a name for use in a pattern of sed.
func quoted(s string) string { return strings.ReplaceAll(s, ".", `\.`) }

// providers checks that each provider of the host answers over TCP and proves its identity.
func (h *host) providers(context.Context) (string, []Finding) {
	var found []Finding
	for _, a := range h.answers {
		if a.err == nil {
			continue
		}
		_, port, _ := net.SplitHostPort(a.Addresses[0])
		problem := fmt.Sprintf("%s provider %s at %s: %v", a.kind, a.name, strings.Join(a.Addresses, ", "), a.err)
		var unknown *net.DNSError
		switch {
		case errors.As(a.err, &unknown):
			found = append(found, do(problem, h.resolve(unknown.Name)))
		case isTimeout(a.err):
			found = append(found, do(problem, fmt.Sprintf("on %s: let TCP port %s in; nft list ruleset shows what drops it", a.name, port)))
		case a.name == h.manifest.Host:
			found = append(found, do(problem, "mend "+h.Instance.Unit("provider-"+a.kind+".service")+", see units"))
		default:
			found = append(found, do(problem, examineOn(a.name)))
		}
	}
	return fmt.Sprintf("%d of %d answer", len(h.answers)-len(found), len(h.answers)), found
}

func isTimeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout() || errors.Is(err, syscall.EHOSTUNREACH)
}

// forwarders checks that this host can reach the remote forwarders. It makes a handshake with each
// forwarder at the address that answers first. The handshake uses UDP, or TCP if only TCP is
// configured. No data is sent to a service.
func (h *host) forwarders(ctx context.Context) (string, []Finding) {
	routes := h.routes()
	problems := make([]*Finding, len(routes))
	var all sync.WaitGroup
	for i, r := range routes {
		all.Go(func() { problems[i] = h.shake(ctx, r) })
	}
	all.Wait()
	var found []Finding
	for _, p := range problems {
		if p != nil {
			found = append(found, *p)
		}
	}
	return fmt.Sprintf("%d of %d answer", len(routes)-len(found), len(routes)), found
}

// routes returns the routes that the check of the forwarders tries. There is one route to each
// forwarder that an identity of this host may reach, and one to each relay that this host calls.
func (h *host) routes() (routes []transport.Route) {
	seen := map[string]bool{}
	for _, r := range h.manifest.Forwarder.Reach {
		target, err := spiffe.Dial(r.ID)
		acting := r.Acting()
		caller := slices.IndexFunc(acting, func(id spiffe.ID) bool {
			svid := h.identities.SVID(id)
			return svid != nil && svid.Valid(h.now)
		})
		if err != nil || caller < 0 {
			continue
		}
		for _, e := range r.Endpoints {
			if key := strings.Join(e, " "); !seen[key] {
				seen[key] = true
				routes = append(routes, transport.Route{Caller: acting[caller], Target: target, Endpoints: []document.Addresses{e}, Transport: r.Transport})
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(h.manifest.Forwarder.Relays)) {
		relay := h.manifest.Forwarder.Relays[name]
		if vertex, err := spiffe.Dial(relay.ID); err == nil && h.identities.SVID(h.manifest.Identity.ID) != nil {
			routes = append(routes, transport.Route{Caller: h.manifest.Identity.ID, Target: vertex, Endpoints: []document.Addresses{relay.Addresses}, Transport: relay.Transport})
		}
	}
	return routes
}

func (h *host) shake(ctx context.Context, r transport.Route) *Finding {
	pool, err := transport.NewPool(func() *hostdir.SVIDSet { return h.identities }, &usage.Table{})
	if err != nil {
		f := fix(err.Error(), h.restart("agent"))
		return &f
	}
	defer pool.Close()
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	_, err = pool.Probe(ctx, r)
	there, port, _ := net.SplitHostPort(r.Endpoints[0][0])
	cure := examineOn(there)
	if h.isOwn(r.Endpoints[0][0]) {
		cure = "mend " + h.Instance.Unit("agent.service") + ", see agent and units"
	}
	over := "UDP"
	if r.Transport == document.OverTCP {
		over = "TCP"
	}
	name := fmt.Sprintf("forwarder of %s at %s", r.Target.ID().Short(), strings.Join(r.Endpoints[0], ", "))
	let := fmt.Sprintf("let %s port %s in there: nft list ruleset shows what drops it", over, port)
	var f Finding
	switch {
	case err == nil && len(pool.Fallbacks()) == 0:
		return nil
	case err == nil:
		f = do(fmt.Sprintf("%s: no answer over UDP, TCP carries what goes there", name), let+`; or, where the network drops UDP, write transport = "tcp" for this host`)
	case isTimeout(err):
		f = do(fmt.Sprintf("%s: no answer over %s", name, over), cure+"; and "+let)
	default:
		f = do(fmt.Sprintf("forwarder: %v", err), cure)
	}
	return &f
}

// isOwn reports whether an address belongs to the forwarder of this host.
func (h *host) isOwn(address string) bool {
	ip, port, _ := net.SplitHostPort(address)
	return slices.ContainsFunc(h.manifest.Forwarder.Listen, func(listen string) bool {
		on, at, _ := net.SplitHostPort(listen)
		bound := net.ParseIP(on)
		return at == port && (on == ip || (bound == nil || bound.IsUnspecified()) && net.ParseIP(ip).IsLoopback())
	})
}
