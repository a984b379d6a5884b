package kit

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/nix-community/go-nix/pkg/narinfo/signature"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/nix/operator/revocation"
)

// Revocations returns a revocation list of the cluster demo with the given number, signed with the
// key. It revokes the given targets.
func Revocations(number int64, key signature.SecretKey, targets ...revocation.Target) trust.SignedRevocations {
	list := revocation.Next(nil, "demo", time.Now(), revocation.Lifetime)
	list.Number = number
	for _, t := range targets {
		revocation.Revoke(list, t)
	}
	return must(revocation.Sign(list, key))
}

// Suspensions returns a signed revocation list of the cluster demo that suspends the given
// identities. Certificates of these identities that are older than a day are revoked. Newer
// certificates are refused only as long as the suspension lasts.
func Suspensions(number int64, key signature.SecretKey, ids ...spiffe.ID) trust.SignedRevocations {
	list := revocation.Next(nil, "demo", time.Now().Add(-24*time.Hour), revocation.Lifetime)
	list.Number = number
	revocation.Revoke(list, revocation.Target{Before: ids})
	for _, id := range ids {
		check(revocation.Suspend(list, id))
	}
	return must(revocation.Sign(list, key))
}

// Naming returns a signed revocation list of the cluster demo that revokes nothing. It only tells
// hosts which version of the documents is the newest.
func Naming(number int64, key signature.SecretKey, named trust.NamedDocuments) trust.SignedRevocations {
	list := revocation.Next(nil, "demo", time.Now(), revocation.Lifetime)
	list.Number, list.Documents = number, &named
	return must(revocation.Sign(list, key))
}

// Continued returns the signed revocation list that follows another. It has the next number and the
// same revocations.
func Continued(s trust.SignedRevocations, key signature.SecretKey) trust.SignedRevocations {
	list := must(s.Open())
	return must(revocation.Sign(revocation.Next(list, list.Cluster, time.Now(), revocation.Lifetime), key))
}

// RevocationsSigned returns the first revocation list of the cluster demo, which revokes nothing.
// It is signed at the given time with a new key.
func RevocationsSigned(at time.Time) trust.SignedRevocations {
	return must(revocation.Sign(revocation.Next(nil, "demo", at, revocation.Lifetime), SigningKey("demo-1")))
}

// ReadFile returns the content of a file, and panics if it cannot be read.
func ReadFile(path string) []byte { return must(os.ReadFile(path)) }

// WriteRevocations writes a revocation list to a file in the same form as activation does.
func WriteRevocations(path string, s trust.SignedRevocations) {
	check(os.MkdirAll(filepath.Dir(path), 0o755))
	check(atomicfile.File(path, must(json.Marshal(s)), 0o644))
}
