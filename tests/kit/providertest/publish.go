package providertest

import (
	"bytes"
	"encoding/json"
	"testing"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/store"
	"github.com/florete/florete/tests/kit"
)

// Tree returns a signed policy for each of the given hosts. Each policy contains the note, by which
// a test can tell versions apart. Tree panics if signing fails.
func Tree(key signature.SecretKey, serial int64, note string, hosts ...string) archive.SignedTree {
	all := map[string][]document.Document{}
	for _, h := range hosts {
		all[h] = append(all[h], kit.Document(serial, document.Policy{
			Cluster: "demo", Host: h, TrustDomain: kit.Domain, Provider: map[string]document.Listening{},
			Kinds: map[string]json.RawMessage{"note": kit.JSON(note)},
		}))
	}
	tree, err := archive.Sign(all, key, time.Now())
	if err != nil {
		panic(err)
	}
	return tree
}

// Stream encodes a tree and returns a Reader of the result, which a provider would receive when an
// operator publishes the tree.
func Stream(tree archive.SignedTree) *archive.StreamReader {
	var b bytes.Buffer
	if err := tree.Encode(&b); err != nil {
		panic(err)
	}
	r, err := archive.NewStreamReader(&b)
	if err != nil {
		panic(err)
	}
	return r
}

// Import imports a tree, which the key has signed, into the archive in a store, as if an operator
// had published it.
func Import(t testing.TB, s store.Store, key signature.SecretKey, tree archive.SignedTree) {
	t.Helper()
	if _, _, err := (archive.Archive{Store: s}).Import(t.Context(), Stream(tree), archive.Terms{Signers: signers.Any(key.ToPublicKey().String()), Keep: 10}); err != nil {
		t.Fatal(err)
	}
}
