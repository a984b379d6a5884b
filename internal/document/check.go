package document

import (
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/spiffe"
)

// unitName matches the names of systemd units for which a manifest may have an entry, without the
// prefix of the host's instance.
var unitName = regexp.MustCompile(`^[a-z0-9][a-z0-9-]*\.(path|service|socket|timer)$`)

// check checks the conditions on a manifest that its Go types do not express: names that become
// parts of paths, references from one need to another, and the settings of the forwarder.
func (m Manifest) check() error {
	if err := m.Trust.check(); err != nil {
		return err
	}
	ids := make([]string, 0, len(m.Needs))
	for _, n := range m.Needs {
		if slices.Contains(ids, n.ID) {
			return fmt.Errorf("need %q: given twice", n.ID)
		}
		ids = append(ids, n.ID)
		if err := n.check(); err != nil {
			return fmt.Errorf("need %q: %w", n.ID, err)
		}
		for _, p := range n.Providers {
			if _, ok := m.Providers[p][n.Kind]; !ok {
				return fmt.Errorf("need %q: provider %q of kind %q is not among the manifest's providers", n.ID, p, n.Kind)
			}
		}
	}
	for name, kinds := range m.Providers {
		for kind, p := range kinds {
			if err := p.Addresses.check(); err != nil {
				return fmt.Errorf("provider %q of kind %q: %w", name, kind, err)
			}
		}
	}
	if err := m.Forwarder.check(); err != nil {
		return err
	}
	if err := m.checkGate(); err != nil {
		return fmt.Errorf("manifest of %s: %w", m.Host, err)
	}
	if err := m.Forwarder.checkEntries(m.Identity.ID); err != nil {
		return err
	}
	if err := m.checkAliases(); err != nil {
		return err
	}
	for name := range m.Units {
		if !unitName.MatchString(name) {
			return fmt.Errorf("unit %q: want a name such as agent.service, without the prefix of the host's instance", name)
		}
	}
	for i, f := range m.Federation {
		switch {
		case f.TrustDomain == m.TrustDomain:
			return fmt.Errorf("federation with %q: that is the host's own trust domain", f.TrustDomain)
		case i > 0 && f.TrustDomain <= m.Federation[i-1].TrustDomain:
			return fmt.Errorf("federation with %q: given twice, or not sorted", f.TrustDomain)
		case !slices.ContainsFunc(m.Needs, func(n Need) bool { return n.ID == f.Need && n.Kind == KindFederation }):
			return fmt.Errorf("federation with %q: no need %q of kind %q", f.TrustDomain, f.Need, KindFederation)
		}
	}
	for _, n := range m.Needs {
		for _, a := range n.DependsOn {
			if !slices.Contains(ids, a) || a == n.ID {
				return fmt.Errorf("need %q: depends on %q, which is no other need of this host", n.ID, a)
			}
		}
	}
	return nil
}

// check returns an error if more keys must sign a document than there are different signing keys,
// because no document could then be signed by enough keys. If no threshold is set, check does not
// look at the keys, because hosts check them when they pin them.
func (t Trust) check() error {
	if t.Threshold == 0 {
		return nil
	}
	return t.Signers().Check()
}

func (f Forwarder) check() error {
	for _, l := range f.Listen {
		if err := checkListen(l); err != nil {
			return err
		}
	}
	if err := f.Transport.check(); err != nil {
		return fmt.Errorf("listen: %w", err)
	}
	var published, reached ports
	for _, p := range f.Publish {
		if err := published.check(p.ID, p.Port, p.Protocol); err != nil {
			return fmt.Errorf("publish %s: %w", p.ID, err)
		}
		if err := p.Protocol.check(); err != nil {
			return fmt.Errorf("publish %s: %w", p.ID, err)
		}
		if err := p.AccessLog.check(); err != nil {
			return fmt.Errorf("publish %s: %w", p.ID, err)
		}
		if p.Protocol == UDP && strings.HasPrefix(p.Upstream, "unix:") {
			return fmt.Errorf("publish %s: upstream %q takes no datagrams, want host:port", p.ID, p.Upstream)
		}
		if err := p.Identity.check(p.Protocol); err != nil {
			return fmt.Errorf("publish %s: %w", p.ID, err)
		}
		if err := p.Record.check(p.Remote); err != nil {
			return fmt.Errorf("publish %s: %w", p.ID, err)
		}
		if p.OpaqueName != "" && !opaque.MatchString(p.OpaqueName) {
			return fmt.Errorf("publish %s: opaqueName %q, want 32 hex digits", p.ID, p.OpaqueName)
		}
	}
	for _, r := range f.Reach {
		if err := reached.check(r.ID, r.Port, r.Protocol); err != nil {
			return fmt.Errorf("reach %s: %w", r.ID, err)
		}
		if err := r.Protocol.check(); err != nil {
			return fmt.Errorf("reach %s: %w", r.ID, err)
		}
		if err := r.Transport.check(); err != nil {
			return fmt.Errorf("reach %s: %w", r.ID, err)
		}
		for _, e := range r.Endpoints {
			if err := e.check(); err != nil {
				return fmt.Errorf("reach %s: %w", r.ID, err)
			}
		}
		if r.Recorded && r.Remote != RemoteSSH {
			return fmt.Errorf("reach %s: recorded with sessions over %q, want %q", r.ID, string(r.Remote), RemoteSSH)
		}
		if err := r.checkPaths(f.Relays); err != nil {
			return fmt.Errorf("reach %s: %w", r.ID, err)
		}
		if err := r.checkPublic(f.Reach); err != nil {
			return fmt.Errorf("reach %s: %w", r.ID, err)
		}
	}
	return f.checkRelays()
}

// ports records the names and protocols of the ports that were checked so far, for each service.
type ports map[spiffe.ID]map[string]bool

// check returns an error if a service has the same port twice. It also returns an error if one of
// several ports has no name, because a port without a name stands for all ports of its service.
func (p *ports) check(id spiffe.ID, port string, protocol Protocol) error {
	if *p == nil {
		*p = ports{}
	}
	if (*p)[id] == nil {
		(*p)[id] = map[string]bool{}
	}
	of, key := (*p)[id], port+"/"+string(protocol)
	switch {
	case port != "" && !spiffe.IsLabel(port):
		return fmt.Errorf("port %q, want a lower-case DNS label", port)
	case of[key]:
		return fmt.Errorf("port %q: given twice", port)
	case len(of) > 0 && (port == "" || of["/"] || of["/"+string(UDP)]):
		return fmt.Errorf("port %q beside others, want a name of each", port)
	}
	of[key] = true
	return nil
}

func (a Addresses) check() error {
	if len(a) == 0 {
		return fmt.Errorf("no address")
	}
	for _, hostport := range a {
		if host, port, err := net.SplitHostPort(hostport); err != nil || host == "" || !isPort(port) {
			return fmt.Errorf("address %q, want host:port", hostport)
		}
	}
	return nil
}

// checkListen checks an address on which the forwarder listens. It accepts only IP addresses and no
// host names: a host listens on its own addresses, but name servers elsewhere decide to which
// address a name leads.
func checkListen(hostport string) error {
	host, port, err := net.SplitHostPort(hostport)
	if err == nil && host != "" {
		_, err = netip.ParseAddr(host)
	}
	if err != nil || !isPort(port) {
		return fmt.Errorf("listen %q, want an IP address and a port, or :port", hostport)
	}
	return nil
}

func isPort(s string) bool {
	port, err := strconv.ParseUint(s, 10, 16)
	return err == nil && port != 0
}

func (p Protocol) check() error {
	if p != TCP && p != UDP {
		return fmt.Errorf("protocol %q, want %q or none", string(p), UDP)
	}
	return nil
}

func (t Transport) check() error {
	if t != AnyTransport && t != OverQUIC && t != OverTCP {
		return fmt.Errorf("transport %q, want %q, %q or none", string(t), OverQUIC, OverTCP)
	}
	return nil
}

func (a AccessLog) check() error {
	if a != AccessOff && a != AccessSampled && a != AccessFull {
		return fmt.Errorf("accessLog %q, want %q, %q or none", string(a), AccessSampled, AccessFull)
	}
	return nil
}

func (a Announcement) check(p Protocol) error {
	switch {
	case a != Unannounced && a != ProxyV2 && a != HTTPHeaders:
		return fmt.Errorf("identity %q, want %q, %q or none", string(a), ProxyV2, HTTPHeaders)
	case a != Unannounced && p == UDP:
		return fmt.Errorf("identity %q of a service over UDP, want none", string(a))
	}
	return nil
}

func (n Need) check() error {
	if !spiffe.IsLabel(n.ID) {
		return fmt.Errorf("not a lower-case DNS label")
	}
	if n.For.IsZero() {
		return fmt.Errorf("no for, want the ID of what it serves")
	}
	if len(n.Providers) == 0 {
		return fmt.Errorf("no provider")
	}
	if len(n.Request) == 0 || n.Request[0] != '{' {
		return fmt.Errorf("request is not an object")
	}
	for name, f := range n.Deliver.Files {
		if name != filepath.Base(name) || name == "." || name == ".." {
			return fmt.Errorf("file %q: not a plain file name", name)
		}
		if _, err := f.Perm(); err != nil {
			return fmt.Errorf("file %q: %w", name, err)
		}
	}
	return nil
}

// Perm parses the octal mode of a delivered file and returns its permissions as a number. For the
// mode "0400", it returns 0o400.
func (f File) Perm() (uint32, error) {
	mode, err := strconv.ParseUint(f.Mode, 8, 32)
	if err != nil || mode > 0o777 {
		return 0, fmt.Errorf("mode %q: want octal permissions such as \"0400\"", f.Mode)
	}
	return uint32(mode), nil
}
