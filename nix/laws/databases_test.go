package laws

import (
	"maps"
	"slices"
	"strings"
)

// databaseServer is a database server whose upstream does not run.
type databaseServer struct {
	Kind    string `json:"kind,omitempty"`
	Service string `json:"service"`
	Address string `json:"address,omitempty"`
	User    string `json:"user,omitempty"`
	Keep    int    `json:"keep,omitempty"`
}

// database is a database of a service.
type database struct {
	On         string   `json:"on"`
	Called     string   `json:"called,omitempty"`
	Restart    string   `json:"restart,omitempty"`
	Rotate     int      `json:"rotate,omitempty"`
	Overlap    int      `json:"overlap,omitempty"`
	Generation int      `json:"generation,omitempty"`
	After      []string `json:"dependsOn,omitempty"`
}

// databases adds databases for some services, at servers of both kinds.
func (g generator) databases(c *cluster, hosts, services []string) {
	c.Providers["database"] = provider{Hosts: hosts[g.IntN(len(hosts)):][:1], Servers: map[string]*databaseServer{
		"postgres": {Service: services[0], Address: "unix:/run/laws/.s.PGSQL.5432", User: "postgres", Keep: g.IntN(3)},
		"cache":    {Kind: "redis", Service: services[len(services)-1], Address: "127.0.0.1:1"},
	}}
	for _, name := range services {
		if g.IntN(4) > 0 {
			continue
		}
		main := database{On: "postgres", Restart: "web.service", Rotate: 30 * g.IntN(2), Generation: g.IntN(3)}
		c.Services[name].Databases = map[string]database{"main": main}
		if g.IntN(2) == 0 {
			c.Services[name].Databases["sessions"] = database{On: "cache", Overlap: 120, After: []string{"database-" + name + "-main"}}
		}
	}
}

// databasesOn reports whether a service on the host needs a database.
func (c *cluster) databasesOn(host string) bool {
	for _, s := range c.Services {
		if len(s.Databases) > 0 && slices.Contains(s.on(), host) {
			return true
		}
	}
	return false
}

func init() { maps.Copy(edits, databaseEdits) }

var databaseEdits = map[string]func(generator, *cluster) bool{
	"another database server":  onProvider("database", func(_ generator, p *provider) { p.Servers["postgres"].Address = "unix:/run/laws/.s.PGSQL.5433" }),
	"another database user":    onProvider("database", func(_ generator, p *provider) { p.Servers["postgres"].User = "florete" }),
	"databases dropped sooner": onProvider("database", func(_ generator, p *provider) { p.Servers["postgres"].Keep = 7 }),
	"a database more": onService(func(_ generator, s *service) bool {
		s.Databases = maps.Clone(s.Databases)
		if s.Databases == nil {
			s.Databases = map[string]database{}
		}
		s.Databases["more"] = database{On: "postgres"}
		return true
	}),
	"no databases": onService(func(_ generator, s *service) bool { had := s.Databases != nil; s.Databases = nil; return had }),
	"another name of a database": onService(func(_ generator, s *service) bool {
		main, had := s.Databases["main"]
		s.Databases = maps.Clone(s.Databases)
		if had {
			main.Called = "former_main"
			s.Databases["main"] = main
		}
		return had
	}),
	"login for longer": onService(func(_ generator, s *service) bool {
		main, had := s.Databases["main"]
		s.Databases = maps.Clone(s.Databases)
		if had {
			main.Rotate = 99
			s.Databases["main"] = main
		}
		return had
	}),
}

// oddDatabases returns values at the bounds of databases and their servers.
func oddDatabases() map[string][]any {
	const server = "providers.database.servers.pg."
	long := func(n int) string { return strings.Repeat("a", n) }
	of := map[string]any{"on": "pg"}
	return map[string][]any{
		"services.s.databases":              {map[string]any{long(52): of}, map[string]any{long(53): of}, map[string]any{"a-b": of}, map[string]any{"A": of}},
		"services.s.databases.d.on":         {"pg", "cache", "none", ""},
		"services.s.databases.d.rotate":     {0, 1, 3650, 3651, -1},
		"services.s.databases.d.overlap":    {59, 60, 43200, 43201},
		"services.s.databases.d.generation": {0, 1, 1000000, 1000001},
		"services.s.databases.d.dependsOn":  {[]string{"database-s-d"}, []string{"file-s-f"}},
		server + "service":                  {"s", "none", ""},
		server + "address": {"", "127.0.0.1:5432", "127.0.0.1:99999", "127.0.0.999:1", "[::1]:5432", "localhost:5432", "192.0.2.1:5432", "unix:/run/postgresql/.s.PGSQL.5432", "unix:a",
			"unix:/" + long(106), "unix:/" + long(107)},
		server + "user": {"postgres", "florete-provider-database", "a b", "a'b", long(63), long(64)},
		server + "keep": {0, 1, 3650, 3651},
	}
}
