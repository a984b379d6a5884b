// Package rename gives a service of a cluster another name, without a loss of what providers have
// for it. It changes the files of the flake: the name of the service, all references to it, and the
// attributes called by which databases, accounts, clients and needs keep their former names.
//
// Nix tells where an attribute was written, so that the files may be of any structure. Only the text
// there is changed; comments and the layout stay. The changes are made in a copy of the flake, which
// must then declare exactly the expected topology.
package rename

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/florete/florete/internal/terminal"
	"github.com/florete/florete/nix/operator/compile"
	"github.com/florete/florete/nix/operator/plan"
	"github.com/florete/florete/nix/operator/scaffold"
)

// Options are the arguments of Service.
type Options struct {
	Dir      string // directory of the flake
	Old, New string // names of the service
	DryRun   bool   // change nothing
	Out      io.Writer
}

// Service renames a service in the files of a flake, and prints what it has changed and which
// changes the next deployment makes. The argument src is the flake in Options.Dir. If Service
// cannot change the files, it prints what to write by hand, and changes nothing.
func Service(ctx context.Context, src compile.Source, o Options) error {
	if err := scaffold.CheckName("service", o.New); err != nil {
		return err
	}
	r, err := open(ctx, o.Dir)
	if err != nil {
		return err
	}
	before, err := compile.Read(ctx, src)
	if err != nil {
		return fmt.Errorf("repair these faults first: %w", err)
	}
	if err := o.free(before.Topology); err != nil {
		return err
	}
	written, err := compile.ReadWritten(ctx, src, o.Old)
	if err != nil && !errors.Is(err, compile.ErrNotWritten) {
		return err
	}
	if err != nil {
		return fmt.Errorf("%w, so its files cannot be changed here: rename the service by hand, and compare with florctl plan", err)
	}
	next, changes := rename(written.Topology, o.Old, o.New)

	tmp, err := os.MkdirTemp("", "florctl-rename-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(tmp)
	c, err := r.copy(ctx, filepath.Join(tmp, "flake"))
	if err != nil {
		return err
	}
	e := editor{repository: c, old: o.Old, new: o.New, places: written.Places, edits: map[string][]edit{}, moves: map[string]string{}}
	e.make(changes)
	is, ok := e.files()
	was := files{}
	for name := range is {
		was[name], _ = c.read(name)
	}
	unmade := fmt.Errorf("nothing was changed: the files of the flake do not say in a plain way where service %s is named", o.Old)
	if !ok || len(is) == 0 {
		return o.byHand(next, changes, unmade)
	}
	if err := c.write(ctx, was, is); err != nil {
		return err
	}
	copied := src
	copied.Flake = c.flake()
	declares, err := compile.ReadWritten(ctx, copied, o.New)
	if err != nil || !reflect.DeepEqual(declares.Topology, next) {
		return o.byHand(next, changes, errors.Join(unmade, err))
	}
	after, err := compile.Read(ctx, copied)
	if err != nil {
		return fmt.Errorf("nothing was changed, because the cluster would have faults: %w", err)
	}
	p, err := plan.Compare(before, after)
	if err != nil {
		return err
	}
	if len(p.Losses) > 0 {
		lost := []error{errors.New("nothing was changed, because data would be lost")}
		for _, l := range p.Losses {
			lost = append(lost, fmt.Errorf("  %s %s", l.What, l.Then))
		}
		if pin := o.pins(before.Topology, after.Topology); pin != "" {
			lost = append(lost, errors.New("the service would move, because replicas are placed by its name: first write services."+o.Old+pin))
		}
		return errors.Join(lost...)
	}
	diff, err := difference(ctx, tmp, was, is)
	if err != nil {
		return err
	}
	if !o.DryRun {
		if err := r.write(ctx, was, is); err != nil {
			return err
		}
	}
	fmt.Fprintf(o.Out, "%s\n", diff)
	return o.report(next, changes, before, after, r, is)
}

// free returns an error unless the cluster has the service, and its next name is free.
func (o Options) free(t compile.Topology) error {
	if _, ok := t.Services[o.Old]; !ok {
		has := "it has " + strings.Join(slices.Sorted(maps.Keys(t.Services)), ", ")
		if meant := terminal.Suggest(o.Old, slices.Collect(maps.Keys(t.Services))); meant != "" {
			has = fmt.Sprintf("did you mean %q?", meant)
		}
		return fmt.Errorf("cluster %s has no service %q: %s", t.Name, o.Old, has)
	}
	for name, s := range t.Services {
		if name == o.New {
			return fmt.Errorf("service %s already exists: choose another name", o.New)
		}
		if slices.Contains(s.Aliases, o.New) {
			return fmt.Errorf("%s is an alias of service %s: choose another name, or take it out of services.%[2]s.aliases", o.New, name)
		}
	}
	return nil
}

// pins returns the attribute that leaves a service with replicas on its hosts, which follow from its
// name. It returns "" if the service does not move.
func (o Options) pins(before, after compile.Topology) string {
	was := before.Services[o.Old].Hosts
	if slices.Equal(was, after.Services[o.New].Hosts) {
		return ""
	}
	all := make([]any, len(was))
	for i, host := range was {
		all[i] = host
	}
	return ".placement.pins = " + nix(all) + ";"
}

// byHand prints what to write, and returns err.
func (o Options) byHand(next map[string]any, changes []change, err error) error {
	if _, printed := io.WriteString(o.Out, byHand(next, o.Old, o.New, changes)); printed != nil {
		return printed
	}
	return fmt.Errorf("%w: write the lines above yourself, and check with florctl plan that nothing is lost", err)
}

func sortedFiles(all files) []string { return slices.Sorted(maps.Keys(all)) }
