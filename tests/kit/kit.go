// Package kit creates the parts of a cluster that tests need, such as a CA with its SVIDs, SSH host
// keys, needs and documents. The functions panic on errors, so that programs without a testing.T
// can use them too.
package kit

import (
	"encoding/json"

	"github.com/florete/florete/internal/spiffe"
)

// Domain is the trust domain of the IDs and certificates that this package creates, unless a
// function takes another one.
const Domain = "demo.flor"

// ID returns the SPIFFE ID with a given path in the trust domain Domain. The path has the form
// "kind/name", such as "node/forge", or "kind/node/name".
func ID(short string) spiffe.ID { return IDIn(Domain, short) }

// IDIn is like ID, but returns an ID in the given trust domain.
func IDIn(domain, short string) spiffe.ID {
	return must(spiffe.ParseID("spiffe://" + domain + "/" + short))
}

// ProviderID returns the SPIFFE ID of the provider process for one kind of need on a host.
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
