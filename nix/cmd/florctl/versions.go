package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/client"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/plan"
	"github.com/florete/florete/providers/archive"
	"github.com/florete/florete/providers/publish"
)

// published is what commands on published versions work on.
type published struct {
	topology  compile.Topology
	providers client.Providers // at least one
}

// ofCluster adds the flags for which cluster is meant and how its config provider
// is reached. The function it returns reads the cluster from the flake of args.
func ofCluster(cmd *cobra.Command) func(ctx context.Context, args []string) (published, error) {
	from, reach := source(cmd), via(cmd)
	return func(ctx context.Context, args []string) (p published, err error) {
		src, err := from(args)
		if err != nil {
			return p, err
		}
		done := progress("evaluating the cluster")
		p.topology, err = compile.ReadTopology(ctx, src)
		done()
		if err != nil {
			return p, err
		}
		p.providers, err = reach(p.topology)
		return p, err
	}
}

// read returns the hosts of a version with their documents, as the first provider has them that
// answers. The documents are signed by a key that the cluster pins.
func (p published) read(ctx context.Context, serial int64) (hosts []publish.Host, err error) {
	err = p.providers.First(func(at *client.Provider) error {
		hosts = nil // of one provider, whole
		return p.readAt(ctx, at, serial, func(h publish.Host) error {
			hosts = append(hosts, h)
			return nil
		})
	})
	return hosts, err
}

func (p published) readAt(ctx context.Context, at *client.Provider, serial int64, with func(publish.Host) error) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	r, w := io.Pipe()
	ended := make(chan error, 1)
	go func() {
		err := at.Export(ctx, serial, w)
		w.CloseWithError(err)
		ended <- err
	}()
	err := readAll(r, p.topology.Name, serial, p.topology.Trust.SigningKeys, with)
	if err != nil {
		cancel()
	}
	r.CloseWithError(err)
	// What could not be exported is why it cannot be read, not the other way round.
	if failed := <-ended; failed != nil && (err == nil || errors.Is(err, failed)) {
		err = failed
	}
	if err != nil {
		return fmt.Errorf("version %d: %w", serial, err)
	}
	return nil
}

func readAll(in io.Reader, cluster string, serial int64, keys []string, with func(publish.Host) error) error {
	r, err := publish.NewReader(in)
	if err != nil {
		return err
	}
	if r.Serial != serial || r.Cluster != cluster {
		return fmt.Errorf("the provider answers with version %d of cluster %.64q, want %d of %q", r.Serial, r.Cluster, serial, cluster)
	}
	for h, err := range r.All(keys) {
		if err == nil {
			err = with(h)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// versions returns what any provider has, newest first.
func (p published) versions(ctx context.Context) ([]archive.Version, error) {
	all, err := client.Each(p.providers, func(at *client.Provider) ([]archive.Version, error) { return at.Versions(ctx) },
		func(v archive.Version) string { return fmt.Sprint(v.Serial, v.Digest) })
	slices.SortStableFunc(all, func(a, b archive.Version) int { return cmp.Compare(b.Serial, a.Serial) })
	return all, err
}

// newestVersion returns the newest version that any provider has, zero for none.
func (p published) newestVersion(ctx context.Context, r *signedRecord) (newest signedVersion, err error) {
	all, err := p.versions(ctx)
	if len(all) > 0 {
		newest = signedVersion{Serial: all[0].Serial, Rev: all[0].Rev}
	}
	if known, ok := r.version(newest.Serial); ok {
		newest = known
	}
	return newest, err
}

func newVersionsCmd() *cobra.Command {
	cmd := &cobra.Command{Use: "versions [FLAKE]", Short: "Print what was published, newest first"}
	cluster := ofCluster(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print JSON")
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		p, err := cluster(cmd.Context(), args)
		if err != nil {
			return err
		}
		all, err := p.versions(cmd.Context())
		if err != nil {
			return err
		}
		if *asJSON {
			return terminal.PrintJSON(cmd.OutOrStdout(), all)
		}
		return archive.Print(cmd.OutOrStdout(), all)
	}
	return cmd
}

func newDiffCmd() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "diff SERIAL SERIAL [FLAKE]",
		Short: "Print what changed from one published version to another, host by host",
		Long: `Print what florctl plan prints, of two versions that were published: florctl versions
has them. Where services run, and which of them strangers reach, is in no document:
florctl plan has it, of two revisions. Exits 2 when access widens, and 0 otherwise.`,
	}
	cluster := ofCluster(cmd)
	asJSON := cmd.Flags().Bool("json", false, "print the differences as JSON")
	cmd.Args = words(2, 3)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		var serials [2]int64
		var err error
		for i := range serials {
			if serials[i], err = parseSerial(args[i]); err != nil {
				return err
			}
		}
		p, err := cluster(cmd.Context(), args[2:])
		if err != nil {
			return err
		}
		var sides [2]compile.Snapshot
		for i, serial := range serials {
			if sides[i], err = p.snapshot(cmd.Context(), serial); err != nil {
				return err
			}
		}
		found, err := plan.Compare(sides[0], sides[1])
		switch {
		case err != nil:
			return err
		case *asJSON:
			err = terminal.PrintJSON(cmd.OutOrStdout(), found)
		default:
			err = found.Text(cmd.OutOrStdout(), colours(os.Stdout))
		}
		if err == nil && found.Widens {
			err = errWidens
		}
		return err
	}
	return cmd
}

// snapshot is what documents have of the cluster at a version.
func (p published) snapshot(ctx context.Context, serial int64) (compile.Snapshot, error) {
	s := compile.Snapshot{Topology: compile.Topology{Name: p.topology.Name}, Documents: map[string]map[string]compile.Raw{}}
	hosts, err := p.read(ctx, serial)
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

func parseSerial(word string) (int64, error) {
	serial, err := strconv.ParseInt(word, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("serial %q, want one that florctl versions prints", word)
	}
	return serial, nil
}
