package serveraccount

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"path/filepath"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/server"
)

// Name identifies an account by its server and by the account's name at that server.
type Name struct{ Server, Account string }

// String returns the name in the form that store keys use.
func (n Name) String() string { return n.Server + "/" + n.Account }

// Request is an interface that the decoded requests of one kind of accounts implement, such as
// requests for database logins.
type Request[R any] interface {
	Of() Name

	// Validate returns an error if the request is not valid at a server.
	Validate(s Server) error

	// Before reports whether this grant comes before another grant of the same account. If grants
	// of an account differ during a rollout, the last grant in this order applies. All processes
	// with the same policy therefore choose the same grant. A grant of a higher generation comes
	// later.
	Before(R) bool
}

// Server is a server of the cluster that has accounts.
type Server struct {
	Kind    string `json:"kind"`
	Address string `json:"address"` // address for this provider, with port: unix:/path, a loopback address, or a name of the cluster
	User    string `json:"user"`    // account of the provider at the server
	Host    string `json:"host"`    // name of the server for services
	Port    int    `json:"port"`    // port of the server for services

	// Keep is the number of seconds after which an account that no policy names is deleted. It is 0
	// for kinds that do not delete accounts.
	Keep int64 `json:"keep,omitempty"`
}

// Policy lists the accounts that hosts may request, and the servers at which they are. Compile
// decodes it from the policy of the provider host.
type Policy[R Request[R]] struct {
	Servers  map[string]Server
	requests server.Requests[R]
	wants    map[Name]R
}

// Compile decodes the accounts that hosts may request at the given servers. It calls grant to set
// the generation of each request. It returns an error for an unknown server and for an invalid
// request.
//
// During a rollout, requests for the same account may differ. The one that comes last in the order
// of Before then applies to all hosts.
func (a *Accounts[R, B]) Compile(p document.Policy, servers map[string]Server, grant func(r *R, generation int)) (*Policy[R], error) {
	policy := &Policy[R]{Servers: servers, wants: map[Name]R{}}
	for _, n := range slices.Sorted(maps.Keys(servers)) {
		if err := a.validate(n, servers[n]); err != nil {
			return nil, fmt.Errorf("policy of %s: kind %q: %s %q: %w", p.Host, a.kind.Name, a.kind.Server, n, err)
		}
	}
	var err error
	policy.requests, err = server.DecodeGrants(p, a.kind.Name, func(g document.Grant) (r R, err error) {
		if err := strictjson.Decode(g.Request, &r); err != nil {
			return r, err
		}
		grant(&r, g.Generation)
		of := r.Of()
		s, there := servers[of.Server]
		if !there {
			return r, fmt.Errorf("%s %q: want one of %s", a.kind.Server, of.Server, strings.Join(slices.Sorted(maps.Keys(servers)), ", "))
		}
		if now, there := policy.wants[of]; !there || now.Before(r) {
			policy.wants[of] = r
		}
		return r, r.Validate(s)
	})
	return policy, err
}

func (a *Accounts[R, B]) validate(name string, s Server) error {
	_, known := a.kind.Open[s.Kind]
	switch {
	case name != filepath.Base(name) || name == "." || name == "..":
		return errors.New("not the name of a file, which its secret is in")
	case !known:
		return fmt.Errorf("kind %q: want one of %s", s.Kind, strings.Join(slices.Sorted(maps.Keys(a.kind.Open)), ", "))
	case s.User == "":
		return errors.New("user: want one to act as")
	case s.Host == "" || s.Port < 1 || s.Port > 65535:
		return fmt.Errorf("host %q, port %d: want where services reach it", s.Host, s.Port)
	case a.kind.Drops && s.Keep < 1:
		return fmt.Errorf("keep %d: want seconds", s.Keep)
	case !a.kind.Drops && s.Keep != 0:
		return fmt.Errorf("keep %d: nothing is dropped there", s.Keep)
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
