package database

import (
	"cmp"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"strconv"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/serveraccount"
)

// Request describes a database that the policy lets a host request, with a login for it.
type Request struct {
	Server  string `json:"server"`
	Name    string `json:"name"`    // name of the database, with which its roles and keys start
	Rotate  int64  `json:"rotate"`  // seconds after which the login is replaced; 0 for never
	Overlap int64  `json:"overlap"` // seconds for which the former login still works

	Generation int `json:"-"` // generation of the grant
}

// Of returns the name that identifies the database across all servers.
func (r Request) Of() serveraccount.Name {
	return serveraccount.Name{Server: r.Server, Account: r.Name}
}

// Compile decodes the granted databases and their servers.
func (d *Databases) Compile(p document.Policy) (*serveraccount.Policy[Request], error) {
	var is struct {
		Servers map[string]serveraccount.Server `json:"servers"`
	}
	if err := server.Settings(p, Name, &is); err != nil {
		return nil, err
	}
	return d.Accounts.Compile(p, is.Servers, func(r *Request, generation int) { r.Generation = generation })
}

// Before reports whether r has a lower precedence than another request for the same database. Such
// requests can differ during a rollout, and the one with the highest precedence then applies.
func (r Request) Before(other Request) bool {
	return cmp.Or(cmp.Compare(r.Generation, other.Generation), cmp.Compare(r.Overlap, other.Overlap), cmp.Compare(r.Rotate, other.Rotate)) < 0
}

// named matches names that need no quotes in SQL and contain no pattern characters of Redis. It
// allows 61 characters, because PostgreSQL allows 63 and the name of a role is two bytes longer.
var named = regexp.MustCompile(`^[a-z0-9][a-z0-9_]{0,60}$`)

// Validate returns an error if the name or the durations of the request are not valid. The rules
// are the same for all servers, so the argument is ignored.
func (r Request) Validate(serveraccount.Server) error {
	switch {
	case !named.MatchString(r.Name):
		return fmt.Errorf("name %q: want at most 61 of a-z, 0-9 and _", r.Name)
	case r.Rotate < 0 || r.Overlap < 0 || r.Rotate > 0 && r.Overlap > r.Rotate/2:
		return fmt.Errorf("overlap of %d seconds, rotated after %d: want it half of that at most", r.Overlap, r.Rotate)
	}
	return nil
}

// values returns the values that a host receives for a login.
func values(s serveraccount.Server, name, user, password string) map[string]string {
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
