// Package archive keeps the published versions of a cluster's documents in the state store of a
// config provider. The newest version is served to hosts; a rollout offers it to them in waves.
// Older versions are kept for rollbacks. The package also signs the documents of a version, and
// encodes them as the stream that operators send to the provider.
//
// Most bodies of documents are the same in the next version. A body is stored once, under its
// digest. It is compressed, and split into chunks that fit into one transaction. Envelopes and
// signatures are stored for each version, with many hosts to a key:
//
//	config/version/<serial>         describes a version; written last, when the version is complete
//	config/index/<tree>/<bucket>    envelopes and signatures of the hosts of a bucket
//	config/body/<digest>/<chunk>    a body
//	config/rollout                  the rollout in progress, or the last one
//	config/import                   held by the import in progress, with a lease
//
// An import writes the bodies, then the index, then the version. Each of its transactions requires
// that the import still holds config/import. If the import is interrupted at any point, the version
// before is still served, and the next import removes the leftovers.
package archive

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/unixtime"
	"github.com/florete/florete/providers/rollout"
	"github.com/florete/florete/providers/store"
)

const (
	everything = "config/"
	versions   = everything + "version/"
	indices    = everything + "index/"
	bodies     = everything + "body/"
)

// perBucket is the approximate number of hosts that share a key of the index, which is a bucket. A
// larger number makes imports cheaper, because each key costs a write. It also makes reads more
// expensive, because a request of one host reads the entries of all hosts in the bucket.
const perBucket = 16

// An Archive is the set of published versions in a state store.
type Archive struct {
	store.Store
	memory *memory
}

// A Version describes one published set of documents for all hosts of the cluster. The documents
// themselves are stored separately.
type Version struct {
	Head
	Rev      string        `json:"rev"`      // revision of the flake
	Signer   string        `json:"signer"`   // names of the keys that signed the version
	Imported unixtime.Time `json:"imported"` // time of the import at this provider
	Content  string        `json:"content"`  // digest of all bodies and closures; a rollback has the digest of the version to which it returns
	Digest   string        `json:"digest"`   // digest of all envelopes
	Tree     string        `json:"tree"`     // name of the version's index
	Buckets  int           `json:"buckets"`

	// Restored reports whether the version came from a backup. Hosts may have had newer versions
	// since, so it is not offered until it is published again.
	Restored bool `json:"restored,omitempty"`
}

// entry is a document of a host in the index.
type entry struct {
	Envelope  string `json:"envelope"`
	Signature string `json:"signature"`
	Digest    string `json:"digest"` // digest of the body

	// Wave is the number of the host's wave in the version's rollout plan. Group is the host group
	// that determines the host's maintenance window.
	Wave   int              `json:"wave,omitempty"`   // number of the wave, from 1; 0 if the rollout does not wait for the host
	Group  string           `json:"group,omitempty"`  // group with the host's maintenance window
	Before rollout.Problems `json:"before,omitempty"` // problems of the host when the rollout began
}

// index is the content of a bucket. It maps the name of each host to the documents of the host.
type index map[string][]entry

// ErrNone is the error for an archive that has no versions, or that does not have the requested
// version.
var ErrNone = errors.New("nothing is published")

// Versions returns the versions that the archive keeps, newest first.
func (a Archive) Versions(ctx context.Context) ([]Version, error) {
	entries, _, err := a.List(ctx, versions)
	if err != nil {
		return nil, err
	}
	var all []Version
	for _, e := range slices.Backward(entries) {
		v, err := decodeVersion(e)
		if err != nil {
			return nil, err
		}
		all = append(all, v)
	}
	return all, nil
}

func decodeVersion(e store.Entry) (v Version, err error) {
	if err := json.Unmarshal(e.Value, &v); err != nil {
		return v, fmt.Errorf("%s: %w", e.Key, err)
	}
	return v, nil
}

// ErrRestored is the error for an archive whose only versions were restored from a backup. It wraps
// ErrNone.
var ErrRestored = fmt.Errorf("%w since this state was restored: florctl publish", ErrNone)

// Newest returns the newest version that hosts are offered. During a rollout, some hosts are still
// offered the version before it. If no version is offered, the error wraps ErrNone.
func (a Archive) Newest(ctx context.Context) (Version, error) {
	v, err := a.last(ctx)
	if err == nil && v.Restored {
		return Version{}, ErrRestored
	}
	return v, err
}

// last returns the newest version, even if it is not served to hosts.
func (a Archive) last(ctx context.Context) (Version, error) {
	const most = 100
	newest := store.Entry{}
	for {
		entries, err := a.Page(ctx, versions, newest.Key, most)
		if err != nil {
			return Version{}, err
		}
		if len(entries) > 0 {
			newest = entries[len(entries)-1]
		}
		switch {
		case len(entries) == most:
			continue
		case newest.Key == "":
			return Version{}, ErrNone
		}
		return decodeVersion(newest)
	}
}

// Export writes the documents of the version with the given serial to w, in the format that
// NewStreamReader reads. If the archive does not keep that version, the error wraps ErrNone.
func (a Archive) Export(ctx context.Context, serial int64, w io.Writer) error {
	all, err := a.Versions(ctx)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(all, func(v Version) bool { return v.Serial == serial })
	if i < 0 {
		return fmt.Errorf("%w with serial %d: florctl versions has those that are kept", ErrNone, serial)
	}
	return EncodeStream(w, all[i].Head, func(yield func(StreamHost, error) bool) {
		if err := a.hosts(ctx, all[i], yield); err != nil {
			yield(StreamHost{}, err)
		}
	})
}

// hosts yields the hosts of a version, sorted by name. It keeps the names and envelopes of all
// hosts in memory, and the bodies of one host at a time.
func (a Archive) hosts(ctx context.Context, v Version, yield func(StreamHost, error) bool) error {
	whole, err := a.whole(ctx, v)
	if err != nil {
		return err
	}
	for _, host := range sorted(whole) {
		documents, err := a.documents(ctx, whole[host])
		if err != nil {
			return err
		}
		if !yield(StreamHost{Name: host, Documents: documents}, nil) {
			return nil
		}
	}
	return nil
}

// whole returns the complete index of a version.
func (a Archive) whole(ctx context.Context, v Version) (index, error) {
	prefix, found := indices+v.Tree+"/", 0
	whole := index{}
	for e, err := range store.All(ctx, a, prefix, "", page) {
		if err != nil {
			return nil, err
		}
		of, err := a.decode(e)
		if err != nil {
			return nil, err
		}
		maps.Copy(whole, of)
		found++
	}
	if found != v.Buckets {
		return nil, fmt.Errorf("%s: %d parts, want %d: %w", prefix, found, v.Buckets, store.ErrNotFound)
	}
	return whole, nil
}

// Closures returns, for each host, the Nix store path of the NixOS system that a version tells the
// host to run. Hosts without such a path are left out.
func (a Archive) Closures(ctx context.Context, v Version) (map[string]string, error) {
	whole, err := a.whole(ctx, v)
	if err != nil {
		return nil, err
	}
	named := map[string]string{}
	for host, entries := range whole {
		for _, entry := range entries {
			var e document.Envelope
			if err := json.Unmarshal([]byte(entry.Envelope), &e); err != nil {
				return nil, fmt.Errorf("envelope of %s: %w", host, err)
			}
			if e.Closure != "" {
				named[host] = e.Closure
			}
		}
	}
	return named, nil
}

func (a Archive) entries(ctx context.Context, v Version, host string) ([]entry, error) {
	of, err := a.bucket(ctx, v, bucketOf(host, v.Buckets))
	return of[host], err
}

func (a Archive) documents(ctx context.Context, entries []entry) (all []hostapi.SignedDocument, err error) {
	for _, e := range entries {
		body, err := a.body(ctx, e.Digest)
		if err != nil {
			return nil, err
		}
		all = append(all, hostapi.SignedDocument{Envelope: e.Envelope, Body: string(body), Signature: e.Signature})
	}
	return all, nil
}

func (a Archive) bucket(ctx context.Context, v Version, n int) (index, error) {
	e, err := a.Get(ctx, indexKey(v.Tree, n))
	if err != nil {
		return nil, err
	}
	return a.decode(e)
}

func (a Archive) decode(e store.Entry) (of index, err error) {
	if of, ok := a.memory.bucket(e.Key, e.Modified); ok {
		return of, nil
	}
	b, err := decompress(e.Value)
	if err == nil {
		err = json.Unmarshal(b, &of)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.Key, err)
	}
	a.memory.keep(e.Key, e.Modified, of)
	return of, nil
}

// body reads a body from its chunks. It returns an error if a chunk is missing.
func (a Archive) body(ctx context.Context, digest string) ([]byte, error) {
	prefix, err := bodyKey(digest)
	if err != nil {
		return nil, err
	}
	chunks, _, err := a.List(ctx, prefix)
	if err != nil {
		return nil, err
	}
	if len(chunks) == 0 {
		return nil, fmt.Errorf("%s: %w", prefix, store.ErrNotFound)
	}
	var packed bytes.Buffer
	for _, c := range chunks {
		packed.Write(c.Value)
	}
	b, err := decompress(packed.Bytes())
	if err == nil && document.Digest(b) != digest {
		err = errors.New("another digest")
	}
	if err != nil {
		return nil, fmt.Errorf("%s: differs from what was imported: %w: publish again", prefix, err)
	}
	return b, nil
}

func versionKey(serial int64) string        { return fmt.Sprintf("%s%016x", versions, serial) }
func indexKey(tree string, n int) string    { return fmt.Sprintf("%s%s/%04x", indices, tree, n) }
func chunkKey(prefix string, n int) string  { return fmt.Sprintf("%s%04x", prefix, n) }
func bucketOf(host string, buckets int) int { return int(sum32(host) % uint32(buckets)) }

func sum32(s string) uint32 {
	h := fnv.New32a()
	h.Write([]byte(s))
	return h.Sum32()
}

// bodyKey returns the key prefix under which the chunks of a body are stored.
func bodyKey(digest string) (string, error) {
	sum, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(digest, "sha256-"))
	if err != nil {
		return "", fmt.Errorf("digest %q: %w", digest, err)
	}
	return bodies + hex.EncodeToString(sum) + "/", nil
}

func decompress(b []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(b))
	if err != nil {
		return nil, err
	}
	r.Multistream(false) // ignores extra chunks, which a failed import may have left
	return io.ReadAll(r)
}
