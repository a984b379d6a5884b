package published

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/providers/archive"
)

// Versions returns descriptions of all versions of the documents that the providers store, newest
// first.
func (c Cluster) Versions(ctx context.Context) ([]archive.Version, error) {
	all, err := client.Each(c.Providers, func(at *client.Provider) ([]archive.Version, error) { return at.Versions(ctx) },
		func(v archive.Version) string { return fmt.Sprint(v.Serial, v.Digest) })
	slices.SortStableFunc(all, func(a, b archive.Version) int { return cmp.Compare(b.Serial, a.Serial) })
	return all, err
}

// PrintSigning prints which keys have signed the newest version. If the cluster requires only one
// signature, it prints nothing.
func (c Cluster) PrintSigning(ctx context.Context, w io.Writer) error {
	need := c.Topology.Trust.Signers().Need()
	if need == 1 {
		return nil
	}
	all, err := c.Versions(ctx)
	if err == nil && len(all) > 0 {
		_, err = fmt.Fprintf(w, "serial %d is signed by %s (%d keys must sign)\n", all[0].Serial, terminal.Text(all[0].Signer), need)
	}
	return err
}

// newest returns the newest version that any provider has. If there is none, it returns the zero
// value.
func (c Cluster) newest(ctx context.Context, r *record) (newest version, err error) {
	all, err := c.Versions(ctx)
	if len(all) > 0 {
		newest = version{Serial: all[0].Serial, Rev: all[0].Rev}
	}
	if known, ok := r.version(newest.Serial); ok {
		newest = known
	}
	return newest, err
}

// Snapshot returns all documents of the version with the given serial, as a compile.Snapshot. The
// topology in the result contains only the name of the cluster.
func (c Cluster) Snapshot(ctx context.Context, serial int64) (compile.Snapshot, error) {
	s := compile.Snapshot{Topology: compile.Topology{Name: c.Topology.Name}, Documents: map[string]map[string]compile.Raw{}}
	hosts, err := c.read(ctx, serial)
	for _, h := range hosts {
		s.Documents[h.Name] = map[string]compile.Raw{}
		for _, d := range h.Documents {
			var e document.Envelope
			if err := strictjson.Decode([]byte(d.Envelope), &e); err != nil {
				return s, err
			}
			s.Documents[h.Name][e.Kind] = compile.Raw{Body: d.Body, Envelope: d.Envelope}
		}
	}
	return s, err
}

// tree returns the documents of a version from the first provider that answers. It verifies the
// signatures, the cluster and the serial of the documents. Only the record can show whether the
// documents are complete.
func (c Cluster) tree(ctx context.Context, serial int64) (archive.SignedTree, error) {
	tree := archive.SignedTree{}
	hosts, err := c.read(ctx, serial)
	for _, h := range hosts {
		for _, raw := range h.Documents {
			d, err := document.Open([]byte(raw.Envelope), []byte(raw.Body), raw.Signature)
			if err != nil {
				return nil, err
			}
			tree[h.Name] = append(tree[h.Name], d)
		}
	}
	return tree, err
}

// read returns the hosts of a version with their documents, from the first provider that answers. A
// key that the cluster pins must have signed the documents.
func (c Cluster) read(ctx context.Context, serial int64) (hosts []archive.StreamHost, err error) {
	err = c.Providers.First(func(at *client.Provider) (err error) {
		hosts, err = c.readAt(ctx, at, serial) // completely from one provider
		return err
	})
	return hosts, err
}

func (c Cluster) readAt(ctx context.Context, at *client.Provider, serial int64) ([]archive.StreamHost, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := at.Export(ctx, serial, w)
		w.CloseWithError(err)
		ended <- err
	}()
	hosts, err := c.readAll(r, serial)
	if err != nil {
		cancel()
	}
	r.CloseWithError(err)
	// A failed export is the cause of a failed read.
	if failed := <-ended; failed != nil && (err == nil || errors.Is(err, failed)) {
		err = failed
	}
	if err != nil {
		return nil, fmt.Errorf("version %d: %w", serial, err)
	}
	return hosts, nil
}

func (c Cluster) readAll(in io.Reader, serial int64) (hosts []archive.StreamHost, err error) {
	r, err := archive.NewStreamReader(in)
	if err != nil {
		return nil, err
	}
	if r.Serial != serial || r.Cluster != c.Topology.Name {
		return nil, fmt.Errorf("the provider answers with version %d of cluster %.64q, want %d of %q", r.Serial, r.Cluster, serial, c.Topology.Name)
	}
	// One key is enough here, because the version may be from before the threshold was raised.
	// Operators sign it again only after they compare its digest with their records.
	for h, err := range r.All(signers.Any(c.Topology.Trust.SigningKeys...)) {
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, h)
	}
	return hosts, nil
}
