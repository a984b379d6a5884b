package archive

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/rollout"
	"github.com/florete/florete/providers/store"
)

// chunk is the largest size of a value in the state store, in bytes.
const chunk = 64 << 10

// Terms are the conditions under which the archive imports a version.
type Terms struct {
	Signers signers.Set // signing keys of each document, with their threshold
	Keep    int         // number of versions to keep

	// Host is the name of this provider's host. The plan of the rollout is in the policy of this
	// host. If AtOnce is true, the version is offered to all hosts without a rollout, and a rollout
	// in progress ends.
	Host   string
	AtOnce bool

	// BeyondBudget permits an import that offers the version to all hosts at once, although this
	// exceeds their disruption budgets.
	BeyondBudget bool

	// Before returns the problems that hosts had before the rollout. The keys are the names of the
	// hosts. Before may be nil.
	Before func(ctx context.Context, plan document.Rollout, now time.Time) (map[string]rollout.Problems, error)

	// Record is called before a new version replaces the last one. It returns changes to make in
	// the same transaction, or an error to refuse the new version. The argument last is the zero
	// Version for the first import. Record may be nil.
	Record func(last, next Version, r Rollout) ([]store.Op, error)
}

// Import stores the version that r contains, and then offers it to hosts, either at once or in a
// rollout. If the same version was imported before, changed is false. Import refuses a version that
// too few keys have signed, that is older than the newest version, or that differs from a stored
// version with the same serial. The error is then a Refusal, and nothing has changed.
func (a Archive) Import(ctx context.Context, r *StreamReader, t Terms) (v Version, changed bool, err error) {
	l, err := a.lock(ctx)
	if err != nil {
		return v, false, err
	}
	defer func() {
		// The leftovers of a failed import are swept as well, because nothing refers to them. If
		// the sweep fails, the import has not failed: the next import removes the leftovers, and
		// the lock ends by itself.
		left := errors.Join(l.sweep(context.WithoutCancel(ctx), t.Keep), l.release(context.WithoutCancel(ctx)))
		if err != nil {
			err = errors.Join(err, left)
		}
	}()

	old, err := a.last(ctx)
	if err != nil && !errors.Is(err, ErrNone) {
		return v, false, err
	}
	roll, err := a.Rollout(ctx)
	if err != nil {
		return v, false, err
	}
	if err := follows(r.Head, old); err != nil {
		return v, false, err
	}
	if !old.Restored { // the bodies of a restored version may be absent
		if err := l.bodiesOf(ctx, old, l.written); err != nil {
			return v, false, err
		}
	}
	made, err := l.write(ctx, r, t)
	if err != nil {
		return v, false, err
	}
	v = made.version(r.Head)
	ends := roll.AtWork() && t.AtOnce
	switch {
	case v.Serial == old.Serial && v.Digest != old.Digest:
		return old, false, refusef("other documents with the same serial %d are served: commit again, a second later", v.Serial)
	case v.Serial == old.Serial && v.Tree == old.Tree && !ends && !old.Restored:
		return old, false, nil
	case roll.Status == rollout.Returning && !ends:
		return old, false, refusef("the rollout of serial %d is going back as budgets permit: wait until that has ended, or end it with florctl rollout abort --beyond-budget", roll.Serial)
	case roll.AtWork() && !ends:
		return old, false, refusef("serial %d is being rolled out, and is at wave %d of %d: wait until that has ended, end it with florctl rollout abort, or publish with --at-once", roll.Serial, roll.Wave, roll.Waves)
	}
	if roll, err = l.plan(ctx, r, t, made, old, v, roll); err != nil {
		return old, false, err
	}
	var record []store.Op
	if t.Record != nil {
		record, err = t.Record(old, v, roll)
		if err != nil {
			return old, false, err
		}
	}
	if err := l.index(ctx, v, made.hosts); err != nil {
		return old, false, err
	}
	value, err := json.Marshal(v)
	if err != nil {
		return old, false, err
	}
	l.add(store.Put(versionKey(v.Serial), value))
	if roll.Serial != 0 {
		op, err := roll.op()
		if err != nil {
			return old, false, err
		}
		l.add(op)
	}
	l.conds = []store.Cond{{Key: rolling, Modified: roll.revision}}
	l.ops = append(l.ops, record...)
	return v, true, l.flush(ctx)
}

// follows returns an error if a version would take hosts back to an earlier version.
func follows(next Head, old Version) error {
	switch {
	case next.Serial < 1:
		return refusef("serial %d, want the time of a commit", next.Serial)
	case old.Cluster != "" && old.Cluster != next.Cluster:
		return refusef("cluster %s is served here, this is %s: publish it at its own provider", old.Cluster, next.Cluster)
	case next.Serial < old.Serial:
		return refusef("serial %d is served, this is %d: commit anew, hosts never go back", old.Serial, next.Serial)
	}
	return nil
}

// tree is the state of an import until the index of the version is written.
type tree struct {
	hosts               index
	rev, signer         string
	all, digest, bodies hash.Hash // hashes of the lines: with signatures, of envelopes, of bodies

	plan       *document.Rollout // plan in the policy of this provider; nil if it has none
	unreadable error             // reason why that policy cannot be read
}

func (t *tree) add(host string, e entry, envelope document.Envelope) {
	t.hosts[host] = append(t.hosts[host], e)
	t.rev = envelope.Rev
	t.signer = signers.Names(e.Signature)
	fmt.Fprintf(t.all, "%s\n%s\n", e.Envelope, e.Signature)
	fmt.Fprintln(t.digest, e.Envelope)
	fmt.Fprintln(t.bodies, strings.TrimSpace(host+" "+envelope.Kind+" "+e.Digest+" "+envelope.Closure))
}

func (t *tree) version(head Head) Version {
	sum := func(h hash.Hash) string { return fmt.Sprintf("%x", h.Sum(nil)) }
	head.Follow = 0
	return Version{Head: head, Rev: t.rev, Signer: t.signer, Imported: unixtime.Of(time.Now()),
		Content: sum(t.bodies), Digest: sum(t.digest), Tree: sum(t.all),
		Buckets: (len(t.hosts) + perBucket - 1) / perBucket}
}

// write writes the bodies of a version that the archive does not have yet.
func (l *lock) write(ctx context.Context, r *StreamReader, terms Terms) (*tree, error) {
	t := &tree{hosts: index{}, all: sha256.New(), digest: sha256.New(), bodies: sha256.New()}
	for h, err := range r.All(terms.Signers) {
		if err != nil {
			return nil, refuse(err)
		}
		for _, d := range h.Documents {
			var envelope document.Envelope
			if err := strictjson.Decode([]byte(d.Envelope), &envelope); err != nil {
				return nil, refuse(err)
			}
			if err := l.body(ctx, envelope.Digest, d.Body); err != nil {
				return nil, err
			}
			t.add(h.Name, entry{Envelope: d.Envelope, Signature: d.Signature, Digest: envelope.Digest}, envelope)
			if h.Name == terms.Host && envelope.Kind == document.DocPolicy {
				policy, err := document.Open([]byte(d.Envelope), []byte(d.Body), d.Signature)
				t.plan, t.unreadable = policy.Policy().Rollout, err
			}
		}
	}
	return t, l.flush(ctx)
}

// body writes a body, unless the version before already has it. A body that a failed import left
// behind is written again, because it would take longer to look for each body in the store.
func (l *lock) body(ctx context.Context, digest, text string) error {
	prefix, err := bodyKey(digest)
	if err != nil {
		return err
	}
	if l.written[prefix] {
		return nil
	}
	l.written[prefix] = true
	packed, err := l.compress([]byte(text))
	if err != nil {
		return err
	}
	chunks := slices.Collect(slices.Chunk(packed, chunk))
	for n, value := range slices.Backward(chunks) { // last chunk first: older releases assume that a body with a first chunk is complete
		if err := l.put(ctx, chunkKey(prefix, n), value); err != nil {
			return err
		}
	}
	return nil
}

// index writes the index of a version, which contains the envelopes and signatures.
func (l *lock) index(ctx context.Context, v Version, hosts index) error {
	buckets := make([]index, v.Buckets)
	for host, entries := range hosts {
		n := bucketOf(host, v.Buckets)
		if buckets[n] == nil {
			buckets[n] = index{}
		}
		buckets[n][host] = entries
	}
	for n, of := range buckets {
		text, err := json.Marshal(of)
		if err != nil {
			return err
		}
		packed, err := l.compress(text)
		if err != nil {
			return err
		}
		if err := l.put(ctx, indexKey(v.Tree, n), packed); err != nil {
			return err
		}
	}
	return l.flush(ctx)
}

// compress compresses a body. All calls share one writer, so that its tables are allocated once.
func (l *lock) compress(b []byte) ([]byte, error) {
	var packed bytes.Buffer
	l.gzip.Reset(&packed)
	_, err := l.gzip.Write(b)
	err = errors.Join(err, l.gzip.Close())
	return packed.Bytes(), err
}

func sorted(hosts index) []string { return slices.Sorted(maps.Keys(hosts)) }
