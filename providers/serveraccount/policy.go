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

// Name is which account it is, of which server.
type Name struct{ Server, Account string }

// String is how it is called in the store.
func (n Name) String() string { return n.Server + "/" + n.Account }

// Request is what a need requests, with the generation that its grant has.
type Request[R any] interface {
	Of() Name

	// Validate is for one of this server.
	Validate(s Server) error

	// Before orders what grants of one account want, by their generations first, so that every
	// process of a policy prefers the same.
	Before(R) bool
}

// Server is where accounts are.
type Server struct {
	Kind    string `json:"kind"`
	Address string `json:"address"` // for this provider: unix:/path, a loopback address, or a name of the cluster, with port
	User    string `json:"user"`    // who this provider is there
	Host    string `json:"host"`    // for services
	Port    int    `json:"port"`    // likewise

	// Keep is after how many seconds what no policy names is dropped; 0 for kinds that drop nothing.
	Keep int64 `json:"keep,omitempty"`
}

// Policy is a policy's part for a kind, decoded.
type Policy[R Request[R]] struct {
	Servers  map[string]Server
	requests server.Requests[R]
	wants    map[Name]R
}

// Compile decodes which accounts are granted, of these servers.
//
// While a version reaches hosts one after the other, grants of one account may differ: what
// goes before no other is what all of them have.
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
