package laws

import (
	"maps"
	"slices"
	"strings"
)

// forge is a forge whose upstream does not run.
type forge struct {
	Kind    string `json:"kind,omitempty"`
	Service string `json:"service"`
	Address string `json:"address,omitempty"`
	User    string `json:"user,omitempty"`
}

// gitToken is a token of a service.
type gitToken struct {
	On           string   `json:"on"`
	Called       string   `json:"called,omitempty"`
	Repositories []string `json:"repositories"`
	Access       string   `json:"access,omitempty"`
	Lifetime     int      `json:"lifetime,omitempty"`
	Restart      string   `json:"restart,omitempty"`
	Generation   int      `json:"generation,omitempty"`
	After        []string `json:"dependsOn,omitempty"`
}

// git adds tokens for some services, at forges of both kinds.
func (g generator) git(c *cluster, hosts, services []string) {
	c.Providers["git"] = provider{Hosts: hosts[g.IntN(len(hosts)):][:1], Forges: map[string]*forge{
		"soft": {Service: services[0], User: "admin", Address: "127.0.0.1:23231"},
		"jo":   {Kind: "forgejo", Service: services[len(services)-1], Address: "127.0.0.1:1"},
	}}
	for _, name := range services {
		if g.IntN(4) > 0 || len(name) > 20 {
			continue
		}
		pull := gitToken{On: "soft", Repositories: []string{"infra", "ops/pages"}[g.IntN(2):], Restart: "web.service", Lifetime: 24 * g.IntN(2), Generation: g.IntN(3)}
		if g.IntN(2) == 0 {
			pull.Access = "write"
		}
		c.Services[name].Git = map[string]gitToken{"pull": pull}
		if g.IntN(2) == 0 {
			c.Services[name].Git["more"] = gitToken{On: "jo", Repositories: []string{"ops/infra"}, After: []string{"git-" + name + "-pull"}}
		}
	}
}

// gitOn reports whether a service on the host needs a Git token.
func (c *cluster) gitOn(host string) bool {
	for _, s := range c.Services {
		if len(s.Git) > 0 && slices.Contains(s.on(), host) {
			return true
		}
	}
	return false
}

func init() { maps.Copy(edits, gitEdits) }

var gitEdits = map[string]func(generator, *cluster) bool{
	"another forge":      onProvider("git", func(_ generator, p *provider) { p.Forges["jo"].Address = "127.0.0.1:2" }),
	"another forge user": onProvider("git", func(_ generator, p *provider) { p.Forges["soft"].User = "florete" }),
	"a token more": onService(func(_ generator, s *service) bool {
		s.Git = maps.Clone(s.Git)
		if s.Git == nil {
			s.Git = map[string]gitToken{}
		}
		s.Git["added"] = gitToken{On: "soft", Repositories: []string{"infra"}}
		return true
	}),
	"another account at a forge": onService(func(_ generator, s *service) bool {
		pull, had := s.Git["pull"]
		s.Git = maps.Clone(s.Git)
		if had {
			pull.Called = "florete-former-pull"
			s.Git["pull"] = pull
		}
		return had
	}),
	"no tokens of forges": onService(func(_ generator, s *service) bool { had := s.Git != nil; s.Git = nil; return had }),
	"a token for more": onService(func(_ generator, s *service) bool {
		pull, had := s.Git["pull"]
		s.Git = maps.Clone(s.Git)
		if had {
			pull.Access, pull.Repositories, pull.Lifetime = "write", append([]string{"all"}, pull.Repositories...), 999
			s.Git["pull"] = pull
		}
		return had
	}),
}

// oddGit returns values at the bounds of tokens and forges.
func oddGit() map[string][]any {
	const forge = "providers.git.forges.soft."
	long := func(n int) string { return strings.Repeat("a", n) }
	of := map[string]any{"on": "soft", "repositories": []string{"infra"}}
	return map[string][]any{
		"services.s.git":                {map[string]any{long(30): of}, map[string]any{long(31): of}, map[string]any{"a-b": of}, map[string]any{"a--b": of}, map[string]any{"A": of}},
		"services.s.git.g.on":           {"soft", "forgejo", "none", ""},
		"services.s.git.g.called":       {"", "florete-a-b", "florete", "admin", "florete--a", "florete-" + long(32), "florete-" + long(33)},
		"services.s.git.g.repositories": {[]string{}, []string{"a", "a"}, []string{"a/b"}, []string{".."}, []string{"a/../b"}, []string{"/a"}, []string{"a b"}, []string{long(200)}, []string{long(201)}},
		"services.s.git.g.access":       {"read", "write", "admin"},
		"services.s.git.g.lifetime":     {0, 1, 8760, 8761},
		"services.s.git.g.generation":   {0, 1, 1000000, 1000001},
		forge + "kind":                  {"soft-serve", "forgejo", "gitlab"},
		forge + "service":               {"s", "none", ""},
		forge + "address":               {"", "127.0.0.1:23231", "127.0.0.1:99999", "127.0.0.999:1", "[::1]:22", "localhost:22", "192.0.2.1:22", "unix:/run/a"},
		forge + "user":                  {"admin", "a b", "a'b", long(40), long(41)},
	}
}
