package activation

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
)

// adopt takes needs over from whatever has delivered them so far: the files in a
// directory become the first generation, without a request or a notification. A need
// that was fulfilled before is left alone.
func (a *activation) adopt() error {
	for _, id := range slices.Sorted(maps.Keys(a.Adopt)) {
		i := slices.IndexFunc(a.needs, func(n *need) bool { return n.ID == id })
		if i < 0 {
			return fmt.Errorf("adopt %s: the manifest of %s has no such need", id, a.set.Manifest.Host)
		}
		if err := a.adoptOne(a.needs[i], a.Adopt[id]); err != nil {
			return fmt.Errorf("adopt %s: %w", id, err)
		}
	}
	return nil
}

func (a *activation) adoptOne(n *need, from string) error {
	if !n.state.Fulfilled.IsZero() {
		return nil
	}
	names := slices.Sorted(maps.Keys(n.Deliver.Files))
	if n.Kind == document.KindCert || len(names) == 0 {
		return fmt.Errorf("kind %s is always fetched: leave it out", n.Kind)
	}
	values := map[string]string{}
	for _, name := range names {
		b, err := os.ReadFile(filepath.Join(from, name))
		if err != nil {
			return fmt.Errorf("%w: the need delivers %s", err, strings.Join(names, ", "))
		}
		value := n.Deliver.Files[name].Value
		if old, ok := values[value]; ok && old != string(b) {
			return fmt.Errorf("%s differs from another file with the same value %q", filepath.Join(from, name), value)
		}
		values[value] = string(b)
	}
	uid, gid, err := a.owner(n.Deliver)
	if err != nil {
		return err
	}
	files, failed := files(n.Need, values, uid, gid)
	if failed != nil {
		return failed
	}
	generation, err := n.dir.Deliver(files)
	if err != nil {
		return err
	}
	n.state.Fulfil(a.observe(n), "", hostapi.Answer{})
	n.state.NotifiedGeneration, n.seen = generation, seen{}
	a.save(n)
	a.forget(n)
	a.report(event.Event{Event: event.Adopted, Need: n.ID, Message: from})
	return nil
}
