package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	dex "github.com/dexidp/dex/server"
	"github.com/dexidp/dex/storage"

	"github.com/florete/florete/internal/secretfile"
)

// connector is where people can sign in besides the users file: a directory or an upstream
// issuer, with what Dex opens it by.
type connector struct {
	name, title, kind string
	config            func(secret string) any // with the path of its secret
}

// Connectors that wrap Dex's own. What is wrong with a directory or upstream, or with its
// secret, shows at a sign-in there, and keeps nobody from signing in elsewhere.
const (
	ldapKind     = "florete-ldap"
	upstreamKind = "florete-oidc"
)

func init() {
	dex.ConnectorsConfig[ldapKind] = func() dex.ConnectorConfig { return new(ldapConfig) }
	dex.ConnectorsConfig[upstreamKind] = func() dex.ConnectorConfig { return new(upstreamConfig) }
}

// connectors are those of a policy, sorted by name.
func connectors(issuer string, ldap map[string]Directory, upstream map[string]Upstream) (all []connector, err error) {
	for _, name := range slices.Sorted(maps.Keys(ldap)) {
		c, err := ldap[name].config()
		if err != nil {
			return nil, fmt.Errorf("ldap %q: %w", name, err)
		}
		all = append(all, connector{name, ldap[name].Title, ldapKind, func(secret string) any { return ldapConfig{c, secret} }})
	}
	for _, name := range slices.Sorted(maps.Keys(upstream)) {
		u := upstream[name]
		if err := u.check(); err != nil {
			return nil, fmt.Errorf("upstream %q: %w", name, err)
		}
		all = append(all, connector{name, u.Title, upstreamKind, func(secret string) any { return upstreamConfig{u, issuer + "/callback", secret} }})
	}
	for i, c := range all {
		if c.name == dex.LocalConnector || slices.ContainsFunc(all[:i], func(o connector) bool { return o.name == c.name }) {
			return nil, fmt.Errorf("connector %q: the name is taken", c.name)
		}
	}
	slices.SortFunc(all, func(a, b connector) int { return strings.Compare(a.name, b.name) })
	return all, nil
}

// forDex are the connectors as Dex reads them, after that of the users file. Their secrets lie
// beside it, in files connector-<name>.
func forDex(users string, all []connector) ([]storage.Connector, error) {
	out := []storage.Connector{{ID: dex.LocalConnector, Name: "Email and password", Type: dex.LocalConnector}}
	for _, c := range all {
		config, err := json.Marshal(c.config(filepath.Join(filepath.Dir(users), "connector-"+c.name)))
		if err != nil {
			return nil, err
		}
		out = append(out, storage.Connector{ID: c.name, Name: c.title, Type: c.kind, Config: config})
	}
	return out, nil
}

// person is somebody by the name or id of a connector, none of another's.
func person(connector, name string) string {
	if connector == dex.LocalConnector {
		return name
	}
	return connector + "/" + name
}

// readSecret reads the secret of a connector.
func readSecret(path string) (string, error) {
	b, err := secretfile.ReadFile(path)
	return strings.TrimRight(string(b), "\r\n"), err
}

// What waits for a directory or an upstream issuer at most, and how many do at once.
const (
	elsewherePatience = 10 * time.Second
	elsewhereAtOnce   = 32
)

// elsewhere bounds what waits for another system. Dex's connectors know no end of waiting.
type elsewhere chan struct{}

var errSilent = fmt.Errorf("no answer within %v", elsewherePatience)

// within returns what f does, unless that takes too long: then f goes on alone, and counts
// until it has ended.
func within[T any](ctx context.Context, e elsewhere, f func() (T, error)) (none T, err error) {
	type result struct {
		v   T
		err error
	}
	select {
	case e <- struct{}{}:
	default:
		return none, errors.New("too many wait for an answer")
	}
	done := make(chan result, 1)
	go func() {
		defer func() { <-e }()
		v, err := f()
		done <- result{v, err}
	}()
	ctx, cancel := context.WithTimeout(ctx, elsewherePatience)
	defer cancel()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		return none, errSilent
	}
}
