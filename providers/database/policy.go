package database

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/florete/florete"
	"github.com/florete/florete/providers/server"
)

// Request is what a need requests.
type Request struct {
	Server  string `json:"server"`
	Name    string `json:"name"`    // of the database there, and what names of roles and keys start with
	Rotate  int64  `json:"rotate"`  // seconds after which the login is replaced; 0 for never
	Overlap int64  `json:"overlap"` // seconds for which the former one works on
}

// key names a database among those of all servers.
func (r Request) key() string { return r.Server + "/" + r.Name }

// Server is where databases are.
type Server struct {
	Kind    string `json:"kind"`    // "postgres" or "redis"
	Address string `json:"address"` // for this provider: unix:/path, a loopback address, or a name of the cluster, with port
	User    string `json:"user"`    // which this provider logs in as
	Host    string `json:"host"`    // for services
	Port    int    `json:"port"`    // likewise
	Keep    int64  `json:"keep"`    // seconds after which a database that no policy names is dropped
}

// spec is what a policy wants of one database.
type spec struct {
	Request
	Generation int
}

// Policy is a policy's part for this kind, decoded.
type Policy struct {
	Servers  map[string]Server `json:"servers"`
	requests server.Requests[Request]
	specs    map[string]spec // by key
}

// Compile decodes which databases are granted, and where they are.
//
// While a version reaches hosts one after the other, those of one database may differ: the
// highest generation is what all of them have.
func (d *Databases) Compile(p florete.Policy) (any, error) {
	policy := &Policy{specs: map[string]spec{}}
	if err := server.Settings(p, Name, policy); err != nil {
		return nil, err
	}
	for _, n := range slices.Sorted(maps.Keys(policy.Servers)) {
		if err := policy.Servers[n].validate(n); err != nil {
			return nil, fmt.Errorf("policy of %s: kind %q: server %q: %w", p.Host, Name, n, err)
		}
	}
	var err error
	policy.requests, err = server.DecodeGrants(p, Name, func(g florete.Grant) (r Request, err error) {
		if err = florete.Decode(g.Request, &r); err == nil {
			err = r.validate(policy.Servers)
		}
		if err != nil {
			return r, err
		}
		now, there := policy.specs[r.key()]
		if wants := (spec{r, g.Generation}); !there || now.before(wants) {
			policy.specs[r.key()] = wants
		}
		return r, nil
	})
	return policy, err
}

// before orders what grants of one database want, so that every process of a policy prefers
// the same.
func (s spec) before(other spec) bool {
	return cmp.Or(cmp.Compare(s.Generation, other.Generation), cmp.Compare(s.Overlap, other.Overlap), cmp.Compare(s.Rotate, other.Rotate)) < 0
}

// named is what needs no quotes in SQL and is no pattern in Redis. A role's name is two bytes
// longer, of 63 that PostgreSQL has.
var named = regexp.MustCompile(`^[a-z0-9][a-z0-9_]{0,60}$`)

func (r Request) validate(servers map[string]Server) error {
	_, there := servers[r.Server]
	switch {
	case !there:
		return fmt.Errorf("server %q: want one of %s", r.Server, strings.Join(slices.Sorted(maps.Keys(servers)), ", "))
	case !named.MatchString(r.Name):
		return fmt.Errorf("name %q: want at most 61 of a-z, 0-9 and _", r.Name)
	case r.Rotate < 0 || r.Overlap < 0 || r.Rotate > 0 && r.Overlap > r.Rotate/2:
		return fmt.Errorf("overlap of %d seconds, rotated after %d: want it half of that at most", r.Overlap, r.Rotate)
	}
	return nil
}

func (s Server) validate(name string) error {
	_, known := backends[s.Kind]
	switch {
	case name != filepath.Base(name) || name == "." || name == "..":
		return errors.New("not the name of a file, which its password is in")
	case !known:
		return fmt.Errorf("kind %q: want one of %s", s.Kind, strings.Join(slices.Sorted(maps.Keys(backends)), ", "))
	case s.User == "":
		return errors.New("user: want one to log in as")
	case s.Host == "" || s.Port < 1 || s.Port > 65535:
		return fmt.Errorf("host %q, port %d: want where services reach it", s.Host, s.Port)
	case s.Keep < 1:
		return fmt.Errorf("keep %d: want seconds", s.Keep)
	}
	if path, unix := strings.CutPrefix(s.Address, "unix:"); unix {
		if !filepath.IsAbs(path) {
			return fmt.Errorf("address %q: want an absolute path", s.Address)
		}
		return nil
	}
	if _, _, err := net.SplitHostPort(s.Address); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	return nil
}

// values are an answer.
func (s Server) values(name, user, password string) map[string]string {
	u := url.URL{User: url.UserPassword(user, password), Host: net.JoinHostPort(s.Host, strconv.Itoa(s.Port))}
	values := map[string]string{"host": s.Host, "port": strconv.Itoa(s.Port), "user": user, "password": password}
	switch s.Kind {
	case postgresKind:
		u.Scheme, u.Path = "postgresql", "/"+name
		values["database"] = name
	case redisKind:
		u.Scheme, u.Path = "redis", "/0"
		values["prefix"] = name + ":"
	}
	values["url"] = u.String()
	return values
}
