package tlog

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"strings"

	"github.com/transparency-dev/tessera/api/layout"
	"github.com/transparency-dev/tessera/client"

	"github.com/florete/florete/internal/hostapi"
)

// Reader reads the log in a directory. Another process may append to the log at the same time. If
// there is no log yet, the methods return fs.ErrNotExist.
type Reader struct{ Dir string }

// Checkpoint returns the newest checkpoint of the log, and the public key with which its signature
// was verified.
func (r Reader) Checkpoint(ctx context.Context) (key string, c hostapi.VerifiedCheckpoint, err error) {
	b, err := os.ReadFile(filepath.Join(r.Dir, publicFile))
	if err != nil {
		return "", c, err
	}
	text, err := r.files().ReadCheckpoint(ctx)
	if err != nil {
		return "", c, err
	}
	key = strings.TrimSpace(string(b))
	c, err = hostapi.OpenCheckpoint(key, string(text))
	return key, c, err
}

// Leaves yields the leaves of the log, which are its entries, beginning at the given index. The log
// is read as it was when it had the given size, in rows. Leaves ends at the first error.
func (r Reader) Leaves(ctx context.Context, from, size uint64) iter.Seq2[Leaf, error] {
	return func(yield func(Leaf, error) bool) {
		for from < size {
			n := from / layout.EntryBundleWidth
			bundle, err := client.GetEntryBundle(ctx, r.files().ReadEntryBundle, n, size)
			if err != nil {
				yield(Leaf{}, err)
				return
			}
			for i := from % layout.EntryBundleWidth; i < uint64(len(bundle.Entries)) && from < size; i++ {
				l, err := ParseLeaf(string(bundle.Entries[i]))
				if !yield(l, err) || err != nil {
					return
				}
				from++
			}
			if from < size && from/layout.EntryBundleWidth == n {
				yield(Leaf{}, fmt.Errorf("log %s: %d rows of bundle %d are missing", r.Dir, layout.EntryBundleWidth-from%layout.EntryBundleWidth, n))
				return
			}
		}
	}
}

// Consistency returns a proof that the log only grew between two sizes: that its first rows are
// still those that it had at the smaller size (RFC 6962 section 2.1.2). If smaller is zero or not
// below size, nothing is to be proved, and the result is nil.
func (r Reader) Consistency(ctx context.Context, smaller, size uint64) ([][]byte, error) {
	if smaller == 0 || smaller >= size {
		return nil, nil
	}
	b, err := client.NewProofBuilder(ctx, size, r.files().ReadTile)
	if err != nil {
		return nil, err
	}
	return b.ConsistencyProof(ctx, smaller, size)
}

// Inclusion returns a proof that the log of the given size contains the entry at the given index
// (RFC 6962 section 2.1.1).
func (r Reader) Inclusion(ctx context.Context, index, size uint64) ([][]byte, error) {
	b, err := client.NewProofBuilder(ctx, size, r.files().ReadTile)
	if err != nil {
		return nil, err
	}
	return b.InclusionProof(ctx, index)
}

func (r Reader) files() client.FileFetcher { return client.FileFetcher{Root: r.Dir} }
