package git

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/serveraccount"
)

// Request describes an access token for Git repositories that the policy lets a host request.
type Request struct {
	Forge        string   `json:"forge"`
	Account      string   `json:"account"` // account of the token at the forge
	Repositories []string `json:"repositories"`
	Access       string   `json:"access"`   // "read" or "write"
	Lifetime     int64    `json:"lifetime"` // seconds

	Generation int `json:"-"` // generation of the grant
}

// Of returns the name that identifies the account across all forges.
func (r Request) Of() serveraccount.Name {
	return serveraccount.Name{Server: r.Forge, Account: r.Account}
}

// These are the values of Request.Access.
const (
	read  = "read"
	write = "write"
)

// Compile decodes the granted tokens and their forges.
func (t *Tokens) Compile(p document.Policy) (*serveraccount.Policy[Request], error) {
	var is struct {
		Forges map[string]serveraccount.Server `json:"forges"`
	}
	if err := server.Settings(p, Name, &is); err != nil {
		return nil, err
	}
	return t.Accounts.Compile(p, is.Forges, func(r *Request, generation int) { r.Generation = generation })
}

// Before reports whether r has a lower precedence than another request for the same token. Such
// requests can differ during a rollout, and the one with the highest precedence then applies.
func (r Request) Before(other Request) bool {
	return cmp.Or(cmp.Compare(r.Generation, other.Generation), cmp.Compare(r.Lifetime, other.Lifetime), cmp.Compare(r.Access, other.Access),
		slices.Compare(r.Repositories, other.Repositories)) < 0
}

var (
	// named matches account names that both kinds of forge accept.
	named = regexp.MustCompile(`^[a-z][a-z0-9]*(-[a-z0-9]+)*$`)

	// repository matches paths that need no quotes in a shell and no escapes in a URL.
	repository = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*(/[A-Za-z0-9][A-Za-z0-9._-]*)*$`)
)

// Validate returns an error if the account, the access or a repository is not valid at the given
// forge, or if the lifetime is shorter than an hour.
func (r Request) Validate(of serveraccount.Server) error {
	switch {
	case !named.MatchString(r.Account) || len(r.Account) > 40:
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

// values returns the values that a host receives for a token. The URL uses HTTP, because the
// forwarder encrypts the traffic. The credentials have the form that a Git credential helper
// prints.
func values(f serveraccount.Server, user, token string) map[string]string {
	at := url.URL{Scheme: "http", Host: net.JoinHostPort(f.Host, strconv.Itoa(f.Port))}
	return map[string]string{"url": at.String(), "user": user, "token": token, "credentials": "username=" + user + "\npassword=" + token + "\n"}
}
