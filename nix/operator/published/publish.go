package published

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/florete/florete/internal/atomicfile"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/signers"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/fleet"
	"github.com/florete/florete/providers/archive"
)

// Signed contains the signed documents of one commit of a cluster. An operator publishes them or
// writes them to a file.
type Signed struct {
	Name    string // name of the cluster
	key     Key
	src     compile.Source
	record  *record
	round   *round
	version version
	bodies  map[string][]document.Document // unsigned
	tree    archive.SignedTree
}

// Sign compiles the last commit of a cluster and signs its documents. It returns an error if the
// flake has uncommitted changes, or if the cluster has faults. Some hosts fetch their NixOS system
// from the binary cache. For these hosts, the map closures contains the store path of the system.
func Sign(ctx context.Context, src compile.Source, key Key, closures map[string]string) (s Signed, err error) {
	tree, err := compile.ReadTree(ctx, src)
	if err != nil {
		return s, err
	}
	if tree.Revision == "" {
		return s, errors.New("the flake's tree has uncommitted changes: commit them and publish that")
	}
	c, err := compile.Compile(ctx, src)
	if err != nil {
		return s, err
	}
	faults, err := tree.Faults(ctx)
	if err == nil && len(faults) > 0 {
		err = &compile.FaultsError{Cluster: c.Name, Faults: faults}
	}
	if err == nil {
		err = key.CheckPinned(c.Name, c.Documents)
	}
	if err != nil {
		return s, err
	}
	if c.Unversioned() {
		return s, fmt.Errorf("cluster %s: its documents have no serial, so hosts would not know which is newer: write inherit self; in the arguments of mkCluster, and commit", c.Name)
	}
	if c.Unlocked(src) {
		return s, fmt.Errorf("cluster %s: flake.lock is missing or lacks an input, so nothing says which Florete compiled it: %s", c.Name, compile.LockCommand)
	}
	if err := archive.NameClosures(c.Documents, closures); err != nil {
		return s, fmt.Errorf("cluster %s: --closure: %w", c.Name, err)
	}
	s = Signed{Name: c.Name, key: key, src: src, bodies: c.Documents}
	if s.tree, s.round, err = key.signDocuments(c.Name, c.Documents); err != nil {
		return s, err
	}
	if s.record, err = openRecord(key.record, c.Name); err != nil {
		return s, err
	}
	s.version = version{Serial: s.tree.Head().Serial, Rev: tree.Revision, Digest: s.tree.Digest(), Roots: rootsOf(c.Documents)}
	return s, nil
}

// SignDocuments signs the documents of a cluster so that they can be published. If the key comes
// from With, it adds the signatures of the other operators.
func (k Key) SignDocuments(cluster string, documents map[string][]document.Document) (archive.SignedTree, error) {
	tree, _, err := k.signDocuments(cluster, documents)
	return tree, err
}

func (k Key) signDocuments(cluster string, documents map[string][]document.Document) (archive.SignedTree, *round, error) {
	by, err := k.begin(cluster, actPublish, signersOf(documents))
	if err != nil {
		return nil, nil, err
	}
	tree, err := archive.SignWith(documents, time.Now(), by.sign)
	if err != nil {
		return nil, nil, fmt.Errorf("cluster %s: %w", cluster, err)
	}
	by.Serial = tree.Head().Serial
	return tree, by, nil
}

// signersOf returns the keys that may sign the documents, and how many of them must sign. It reads
// both from a manifest in the documents.
func signersOf(documents map[string][]document.Document) signers.Set {
	for _, all := range documents {
		for _, d := range all {
			if d.Envelope.Kind == document.DocManifest {
				return d.Manifest().Trust.Signers()
			}
		}
	}
	return signers.Set{}
}

func (s Signed) String() string {
	return fmt.Sprintf("cluster %s, %d hosts, serial %d, signed by %s", s.Name, len(s.tree), s.version.Serial, signers.Names(s.round.Texts[0].Signatures))
}

// CheckRootsKept returns an error if the documents contain none of the roots that were published
// before. Hosts trust only the earlier roots, so they would reject all providers.
func (s Signed) CheckRootsKept() error {
	if err := compile.CheckFingerprintsKept(s.record.roots(), s.version.Roots); err != nil {
		return fmt.Errorf("cluster %s: %w; pass --replace-roots if you then deploy every host by hand", s.Name, err)
	}
	return nil
}

// WriteSignatures writes the signatures to a file and returns ErrSignedOnly, if the key comes from
// SignOnly. Otherwise it does nothing and returns nil.
func (s Signed) WriteSignatures(out io.Writer) error {
	if s.key.only == "" {
		return nil
	}
	if err := s.record.offered(s.version); err != nil {
		return err
	}
	return s.round.write(out, fmt.Sprintf("cluster %s, %d hosts, serial %d, %s", s.Name, len(s.tree), s.version.Serial, s.version.Digest))
}

// Write writes the signed documents to a file, from which a provider can import them. If path is
// "-", it writes them to stdout.
func (s Signed) Write(path string, stdout io.Writer) error {
	if err := s.record.offered(s.version); err != nil {
		return err
	}
	_, err := atomicfile.Output(path, 0o644, stdout, func(f *os.File) error { return s.tree.Encode(f) })
	return err
}

// Publication contains options for publishing signed documents with Cluster.Publish.
type Publication struct {
	Former   string   // digest of the version to which hosts go back, if it is not recorded
	Replaces int64    // version that may contain commits which the flake lacks
	AtOnce   bool     // offer the documents to all hosts at once, without waves
	Without  []string // hosts that may be left behind with a removed root

	// BeyondBudget offers the documents to all hosts at once, although this exceeds the disruption
	// budgets of the hosts.
	BeyondBudget bool
}

// Publish makes the config providers serve signed documents to hosts.
func (c Cluster) Publish(ctx context.Context, s Signed, how Publication) error {
	if s.key.only == "" {
		if err := c.supply(ctx, s.record); err != nil {
			return err
		}
	}
	reports, err := c.Providers.Reports(ctx)
	if err == nil {
		err = fleet.Absent(c.Topology, reports, time.Now())
	}
	if err == nil {
		err = c.rootsLeft(s.version.Roots, reports, how.Without)
	}
	if err != nil {
		return err
	}
	last, err := c.newest(ctx, s.record)
	if err != nil {
		return err
	}
	if last.Rev != "" && last.Serial < s.version.Serial && last.Serial != how.Replaces {
		if err := s.src.Descends(ctx, s.version.Rev, last.Rev); err != nil {
			return fmt.Errorf("cluster %s: version %d is in force: %w; to undo its changes, pass --replace %[2]d", c.Topology.Name, last.Serial, err)
		}
	}
	var follow []archive.SignedTree
	if !how.AtOnce {
		if follow, err = c.former(ctx, s.record, s.bodies, last.Serial, how.Former, s.round); err != nil {
			return fmt.Errorf("cluster %s: %w", c.Topology.Name, err)
		}
	}
	list, err := c.renewed(ctx, s.round, s.record, namingOf(s.tree, s.record, s.version, how.AtOnce, s.round.at))
	if err == nil {
		err = s.WriteSignatures(c.Out)
	}
	if err != nil {
		return err
	}
	// If the new documents raise the threshold, hosts would refuse the former list, which has too
	// few signatures. They must have the new list first.
	if list != nil && list.weak {
		if err := c.renew(ctx, s.record, list); err != nil {
			return err
		}
		list = nil
	}
	partly := c.serve(ctx, s.record, s.version, client.Importing{AtOnce: how.AtOnce, BeyondBudget: how.BeyondBudget}, s.tree, follow...)
	if partly != nil && !errors.Is(partly, ErrPartly) {
		return partly
	}
	if err := c.renew(ctx, s.record, list); err != nil {
		return err
	}
	return partly
}

// serve makes all providers serve a version, and records the version. The argument follow contains
// further documents that a rollout needs. serve fails if no provider accepts the version. It
// returns ErrPartly if only some providers accept it and the providers do not share a store.
func (c Cluster) serve(ctx context.Context, r *record, v version, how client.Importing, tree archive.SignedTree, follow ...archive.SignedTree) error {
	if err := r.offered(v); err != nil {
		return err
	}
	taken := 0
	err := c.Providers.All(func(to *client.Provider) error {
		var text bytes.Buffer
		if err := tree.Encode(&text, follow...); err != nil {
			return err
		}
		report, err := to.Import(ctx, &text, how)
		if err == nil {
			taken++
			fmt.Fprintln(c.Out, report)
		}
		return err
	})
	if err != nil {
		return err
	}
	v.Served = true
	if err := r.add(v); err != nil {
		return err
	}
	if taken < len(c.Providers) && !sharesStore(tree) {
		return ErrPartly
	}
	return nil
}

// sharesStore reports whether the provider hosts in a tree share a store, so that all of them serve
// what one accepts.
func sharesStore(tree archive.SignedTree) bool {
	for _, documents := range tree {
		for _, d := range documents {
			if d.Envelope.Kind == document.DocPolicy && d.Policy().Store != nil {
				return true
			}
		}
	}
	return false
}
