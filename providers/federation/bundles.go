package federation

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/spiffe/go-spiffe/v2/bundle/jwtbundle"
	"github.com/spiffe/go-spiffe/v2/bundle/spiffebundle"
	"github.com/spiffe/go-spiffe/v2/spiffeid"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/trust"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/store"
)

// These are the key prefixes of bundles in the store.
const (
	ownAt     = Name + "/own"
	foreignAt = Name + "/foreign/" // followed by the trust domain's name in the flake
)

// record is the stored bundle of a foreign trust domain. It includes the digest of the bundle that
// the policy contained when the record was stored.
type record struct {
	Bundle string `json:"bundle"`
	First  string `json:"first"` // digest of the policy's bundle
}

// inForce returns the bundle of a foreign trust domain that is in force, and the revision of its
// record. This is normally the last good bundle that was fetched. It is the bundle in the policy if
// that bundle was added later and is not older.
func (f *Federation) inForce(ctx context.Context, t *trusted) (b *trust.Bundle, revision int64, err error) {
	var r record
	revision, err = store.Load(ctx, f.Store, t.key, &r)
	if err != nil || revision == 0 {
		return t.first, 0, err
	}
	if b, err = trust.ParseBundle(t.name, []byte(r.Bundle)); err != nil {
		return nil, 0, fmt.Errorf("%s: %w", t.key, err)
	}
	if r.First != t.digest && t.first.CheckAfter(b) == nil {
		return t.first, revision, nil
	}
	return b, revision, nil
}

// accept puts a fetched bundle in force and writes an audit row. If the bundle is already in force,
// accept does nothing. It refuses a bundle that must not replace the bundle in force.
func (f *Federation) accept(ctx context.Context, t *trusted, b *trust.Bundle) error {
	old, revision, err := f.inForce(ctx, t)
	if err != nil {
		return err
	}
	if err := b.CheckAfter(old); err != nil {
		return &refusedError{codeBundle, err}
	}
	if b.Equal(old) {
		return nil
	}
	text, err := b.Marshal()
	if err != nil {
		return err
	}
	row := server.Row{Time: time.Now().UTC(), Kind: Name, Outcome: server.Changed, Code: server.CodeInForce,
		Message: fmt.Sprintf("the bundle of %s with sequence number %d came into force, before it %d", t.name, b.Sequence(), old.Sequence()),
		Detail:  map[string]string{"trustDomain": t.name, "endpoint": t.endpoint, "sequence": fmt.Sprint(b.Sequence())}}
	_, err = f.Store.Commit(ctx, store.Txn{
		If:   []store.Cond{{Key: t.key, Modified: revision}},
		Then: []store.Op{store.Put(t.key, marshal(record{string(text), t.digest})), row.Op()},
	})
	if errors.Is(err, store.ErrConflict) {
		return nil // another replica was first; this one fetches again
	}
	if err == nil {
		row.Log(ctx, f.Logger)
	}
	return err
}

// served is the stored record of the bundle of this trust domain.
type served struct {
	Digest   string `json:"digest"`
	Sequence uint64 `json:"sequence"`
}

// keepOwn updates the bundle of this trust domain that the endpoint serves. If the content has
// changed, the bundle gets a new sequence number. The number is at least the time in seconds, so
// that it grows even after the store was lost.
func (f *Federation) keepOwn(ctx context.Context, p *Policy) error {
	td, err := spiffeid.TrustDomainFromString(p.roots.TrustDomain())
	if err != nil {
		return err
	}
	b := spiffebundle.FromX509Authorities(td, p.roots.Certificates())
	if f.Keys != "" {
		keys, err := jwtbundle.Load(td, f.Keys)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return err
		}
		if err == nil {
			b.SetJWTAuthorities(keys.JWTAuthorities())
		}
	}
	b.SetRefreshHint(p.refresh)
	text, err := canonical(b)
	if err != nil {
		return err
	}
	digest := document.Digest(text)
	var last served
	modified, err := store.Load(ctx, f.Store, ownAt, &last)
	if err != nil {
		return err
	}
	if last.Digest != digest {
		last = served{digest, max(last.Sequence+1, uint64(time.Now().Unix()))}
		row := server.Row{Time: time.Now().UTC(), Kind: Name, Outcome: server.Changed, Code: server.CodeInForce,
			Message: fmt.Sprintf("the bundle of %s is served with sequence number %d", td, last.Sequence),
			Detail:  map[string]string{"trustDomain": td.Name(), "sequence": fmt.Sprint(last.Sequence)}}
		_, err := f.Store.Commit(ctx, store.Txn{
			If:   []store.Cond{{Key: ownAt, Modified: modified}},
			Then: []store.Op{store.Put(ownAt, marshal(last)), row.Op()},
		})
		if errors.Is(err, store.ErrConflict) {
			return nil // another replica was first; its number is read at the next turn
		}
		if err != nil {
			return err
		}
		row.Log(ctx, f.Logger)
	}
	b.SetSequenceNumber(last.Sequence)
	f.own.Store(b)
	return nil
}

// canonical returns the canonical encoding of a bundle. Two bundles are equal if their encodings
// are.
func canonical(b *spiffebundle.Bundle) ([]byte, error) {
	text, err := b.Marshal()
	if err != nil {
		return nil, err
	}
	parsed, err := trust.ParseBundle(b.TrustDomain().Name(), text)
	if err != nil {
		return nil, err
	}
	return parsed.Marshal()
}
