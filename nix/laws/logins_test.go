package laws

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/spiffe"
)

// logins makes some services SSH services, and gives roles logins there. It does not use the
// generator's random numbers, so that the rest of the topology does not change.
func (c *cluster) logins() {
	g := generator{rand.New(rand.NewPCG(uint64(len(c.Roles)), uint64(len(c.Services)+10*len(c.Hosts))))}
	c.Providers["ssh"] = provider{Hosts: c.Providers["cert"].Hosts[:1], Lifetime: []int{0, 300, 86400}[g.IntN(3)]}
	taken := map[string]bool{} // hosts with an SSH service
	for _, name := range sorted(c.Services) {
		s := c.Services[name]
		if s.Visibility == "host" || s.Ports != nil || s.Upstream != "" || s.Identity != "" || s.Protocol != "" || s.Replicas != nil || s.TLSName != "" || g.IntN(6) == 0 ||
			slices.ContainsFunc(s.on(), func(h string) bool { return taken[h] }) {
			continue
		}
		s.Protocol = "ssh"
		for _, h := range s.on() {
			taken[h] = true
		}
		for _, of := range sorted(c.Roles) {
			if of == "node" || of == "operator" || g.IntN(4) == 0 {
				continue
			}
			written := name
			if s.Scope != "" && s.Hosts != nil && g.IntN(2) == 0 {
				written += "@" + g.places(c, s.Hosts[g.IntN(len(s.Hosts))])
			}
			r := c.Roles[of]
			if r.Logins == nil {
				r.Logins = map[string][]string{}
			}
			r.Logins[written] = append(g.some([]string{"backup", "root"}, 2), "deploy")
			r.Privileged = r.Privileged || slices.Contains(r.Logins[written], "root")
		}
	}
}

// permits reports whether a role permits a login at an ID of a service on a host.
func (c *cluster) permits(held, account, wanted, host, id string) bool {
	r := c.role(held)
	for name, accounts := range r.Logins {
		if slices.Contains(accounts, account) && c.means(name, wanted, host, id) {
			return true
		}
	}
	return slices.ContainsFunc(r.Roles, func(in string) bool { return c.permits(in, account, wanted, host, id) })
}

// TestLogins checks that a manifest permits the logins of users that their roles permit there, each
// with its last end, and no others, and that certificates and host keys reach those who need them.
func TestLogins(t *testing.T) {
	total, ending := 0, 0
	for _, s := range samples(t) {
		principals := map[string]principal{}
		for _, p := range s.c.principals() {
			principals[p.id] = p
		}
		manifests := s.is.manifests(t)
		permitting := map[string]bool{} // hosts
		for host, m := range manifests {
			for _, p := range m.Forwarder.Publish {
				for _, a := range p.Allow {
					who, ours := principals[a.ID.String()]
					for _, account := range []string{"backup", "deploy", "root"} {
						want, may := int64(0), false
						for _, role := range sorted(s.c.Roles) {
							if !ours || a.ID.Kind() != spiffe.KindUser || !s.c.permits(role, account, p.ID.Name(), host, p.ID.String()) {
								continue
							}
							permitting[host] = true
							switch end, has := s.c.end(who, role); {
							case has && end == 0:
								want, may = -1, true
							case has && want >= 0:
								want, may = max(want, end), true
							}
						}
						i := slices.IndexFunc(a.Logins, func(l document.Login) bool { return l.Account == account })
						if may != (i >= 0) {
							t.Errorf("%s: on %s, %s as %s at %s: %v, want %t", s, host, a.ID, account, p.ID, a.Logins, may)
							continue
						}
						if may {
							total++
						}
						if got := max(want, 0); may && a.Logins[i].Until.Seconds() != got {
							t.Errorf("%s: on %s, %s as %s at %s ends at %d, want %d", s, host, a.ID, account, p.ID, a.Logins[i].Until.Seconds(), got)
						} else if may && got > 0 {
							ending++
						}
					}
				}
			}
			for _, r := range m.Forwarder.Reach {
				of := s.c.Services[r.ID.Name()]
				isSSH := of != nil && of.Protocol == "ssh" && r.ID.TrustDomain() == s.c.TrustDomain
				if !isSSH && r.HostKeys != nil {
					t.Errorf("%s: %s has host keys of %s", s, host, r.ID)
				}
				for _, on := range sorted(s.c.Hosts) {
					publishes := isSSH && slices.Contains(of.on(), on) && (r.ID.Node() == "" || r.ID.Node() == on)
					if key := s.c.Hosts[on].SSHHostKey; key != "" && publishes != slices.Contains(r.HostKeys, key) {
						t.Errorf("%s: %s has the host key of %s for %s: %t, want %t", s, host, on, r.ID, !publishes, publishes)
					}
				}
			}
		}
		for host, m := range manifests {
			for _, n := range m.Needs {
				switch {
				case n.Kind != document.KindSSH:
				case n.ID == "ssh-keys" && permitting[host]:
				case !strings.HasPrefix(n.ID, "ssh-user-") && n.ID != "ssh-keys":
					t.Errorf("%s: %s has the need %s", s, host, n.ID)
				}
			}
			has := slices.ContainsFunc(m.Needs, func(n document.Need) bool { return n.ID == "ssh-keys" })
			if permitting[host] && !has {
				t.Errorf("%s: %s lacks the keys that verify certificates", s, host)
			}
		}
	}
	if total < len(samples(t)) || ending == 0 {
		t.Errorf("only %d logins, %d with an end, in %d topologies", total, ending, len(samples(t)))
	}
}
