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

// connector is a source of people in addition to the users file. It is a directory or an upstream
// issuer, with its configuration for Dex.
type connector struct {
	name, title, kind string
	config            func(secret string) any // with the path of its secret
}

// These are the types of Florete's own Dex connectors. If a directory or an upstream issuer fails,
// or its secret is wrong, only people who sign in there are affected.
const (
	ldapKind     = "florete-ldap"
	upstreamKind = "florete-oidc"
)

func init() {
	dex.ConnectorsConfig[ldapKind] = func() dex.ConnectorConfig { return new(ldapConfig) }
	dex.ConnectorsConfig[upstreamKind] = func() dex.ConnectorConfig { return new(upstreamConfig) }
}

// connectors returns the connectors of a policy, sorted by name.
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

// forDex returns the connectors in the form that Dex reads. The connector of the users file is the
// first. The secrets of the others are in files named connector-<name> beside that file.
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

// person returns a name for a person who signs in through a connector. No person of another
// connector has the same name.
func person(connector, name string) string {
	if connector == dex.LocalConnector {
		return name
	}
	return connector + "/" + name
}

// readSecret reads the secret of a connector from a file.
func readSecret(path string) (string, error) {
	b, err := secretfile.ReadFile(path)
	return strings.TrimRight(string(b), "\r\n"), err
}

// These constants limit calls to directories and upstream issuers: the longest duration of a call,
// and the number of calls at the same time.
const (
	elsewherePatience = 10 * time.Second
	elsewhereAtOnce   = 32
)

// elsewhere limits the number of simultaneous calls to another system. It is necessary because
// Dex's connectors have no timeout.
type elsewhere chan struct{}

var errSilent = fmt.Errorf("no answer within %v", elsewherePatience)

// within returns the result of a function, unless the function takes too long. In that case the
// function continues in the background, and is counted until it returns.
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
