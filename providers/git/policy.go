package git

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
	Forge        string   `json:"forge"`
	Account      string   `json:"account"` // of the token there
	Repositories []string `json:"repositories"`
	Access       string   `json:"access"`   // "read" or "write"
	Lifetime     int64    `json:"lifetime"` // seconds
}

// key names an account among those of all forges.
func (r Request) key() string { return r.Forge + "/" + r.Account }

// What a token may do.
const (
	read  = "read"
	write = "write"
)

// Forge is where repositories are.
type Forge struct {
	Kind    string `json:"kind"`    // "soft-serve" or "forgejo"
	Address string `json:"address"` // for this provider: a loopback address, of SSH or of HTTP
	User    string `json:"user"`    // who this provider is there
	Host    string `json:"host"`    // for services, where they reach it by HTTP
	Port    int    `json:"port"`    // likewise
}

// spec is what a policy wants of one account.
type spec struct {
	Request
	Generation int
}

// Policy is a policy's part for this kind, decoded.
type Policy struct {
	Forges   map[string]Forge `json:"forges"`
	requests server.Requests[Request]
	specs    map[string]spec // by key
}

// Compile decodes which tokens are granted, and of which forges.
//
// While a version reaches hosts one after the other, those of one token may differ: the
// highest generation is what all of them have.
func (t *Tokens) Compile(p florete.Policy) (any, error) {
	policy := &Policy{specs: map[string]spec{}}
	if err := server.Settings(p, Name, policy); err != nil {
		return nil, err
	}
	for _, n := range slices.Sorted(maps.Keys(policy.Forges)) {
		if err := policy.Forges[n].validate(n); err != nil {
			return nil, fmt.Errorf("policy of %s: kind %q: forge %q: %w", p.Host, Name, n, err)
		}
	}
	var err error
	policy.requests, err = server.DecodeGrants(p, Name, func(g florete.Grant) (r Request, err error) {
		if err = florete.Decode(g.Request, &r); err == nil {
			err = r.validate(policy.Forges)
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

// before orders what grants of one token want, so that every process of a policy prefers the
// same.
func (s spec) before(other spec) bool {
	return cmp.Or(cmp.Compare(s.Generation, other.Generation), cmp.Compare(s.Lifetime, other.Lifetime), cmp.Compare(s.Access, other.Access),
		slices.Compare(s.Repositories, other.Repositories)) < 0
}

var (
	// account is what both kinds of forge accept.
	account = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

	// repository is a path that neither a shell nor a URL reads as anything else.
	repository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)
)

func (r Request) validate(forges map[string]Forge) error {
	of, there := forges[r.Forge]
	switch {
	case !there:
		return fmt.Errorf("forge %q: want one of %s", r.Forge, strings.Join(slices.Sorted(maps.Keys(forges)), ", "))
	case !account.MatchString(r.Account) || len(r.Account) > 40:
		return fmt.Errorf("account %q: want at most 40 of a-z, 0-9 and single hyphens", r.Account)
	case r.Access != read && r.Access != write:
		return fmt.Errorf("access %q: want %s or %s", r.Access, read, write)
	case r.Lifetime < 3600:
		return fmt.Errorf("lifetime of %d seconds: want an hour or more", r.Lifetime)
	case len(r.Repositories) == 0:
		return errors.New("repositories: want one at least")
	}
	for _, name := range r.Repositories {
		if !repository.MatchString(name) || len(name) > 200 || of.Kind == forgejoKind && strings.Count(name, "/") != 1 {
			return fmt.Errorf("repository %q: want its path at the forge", name)
		}
	}
	return nil
}

func (f Forge) validate(name string) error {
	_, known := forges[f.Kind]
	switch {
	case name != filepath.Base(name) || name == "." || name == "..":
		return errors.New("not the name of a file, which its credential is in")
	case !known:
		return fmt.Errorf("kind %q: want one of %s", f.Kind, strings.Join(slices.Sorted(maps.Keys(forges)), ", "))
	case f.User == "":
		return errors.New("user: want one to act as")
	case f.Host == "" || f.Port < 1 || f.Port > 65535:
		return fmt.Errorf("host %q, port %d: want where services reach it", f.Host, f.Port)
	}
	if _, _, err := net.SplitHostPort(f.Address); err != nil {
		return fmt.Errorf("address: %w", err)
	}
	return nil
}

// values are an answer. Bytes go through the forwarder, so the URL is of HTTP. Credentials
// are what a helper of git's prints.
func (f Forge) values(user, token string) map[string]string {
	at := url.URL{Scheme: "http", Host: net.JoinHostPort(f.Host, strconv.Itoa(f.Port))}
	return map[string]string{"url": at.String(), "user": user, "token": token, "credentials": "username=" + user + "\npassword=" + token + "\n"}
}
