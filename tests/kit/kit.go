// Package kit creates the parts of a cluster that tests need: a CA with its SVIDs, SSH host keys,
// needs and documents. It panics if something cannot be created, so that test programs can use it
// too.
package kit

import (
	"encoding/json"

	"github.com/florete/florete/internal/spiffe"
)

// Domain is the trust domain of all IDs and certificates of this package.
const Domain = "demo.flor"

// ID returns the ID in Domain with the path short, "kind/name" or "kind/node/name".
func ID(short string) spiffe.ID { return IDIn(Domain, short) }

// IDIn returns an ID in another trust domain.
func IDIn(domain, short string) spiffe.ID {
	return must(spiffe.ParseID("spiffe://" + domain + "/" + short))
}

// ProviderID returns the ID of the server of a provider kind on a host.
func ProviderID(host, kind string) spiffe.ID {
	return ID("service/" + host + "/" + spiffe.ProviderService(kind))
}

// JSON returns v encoded as JSON.
func JSON(v any) json.RawMessage { return must(json.Marshal(v)) }

func must[T any](v T, err error) T {
	check(err)
	return v
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}
