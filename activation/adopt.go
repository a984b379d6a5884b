package activation

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
)

// adopt takes needs over from whatever has delivered them so far: the files in a
// directory become the first generation, without a request or a notification. A need
// that was fulfilled before is left alone.
func (a *activation) adopt() error {
	for _, id := range slices.Sorted(maps.Keys(a.Adopt)) {
		i := slices.IndexFunc(a.table.Needs, func(n *needstate.Need) bool { return n.ID == id })
		if i < 0 {
			return fmt.Errorf("adopt %s: the manifest of %s has no such need", id, a.host.Manifest.Host)
		}
		if err := a.adoptOne(a.table.Needs[i], a.Adopt[id]); err != nil {
			return fmt.Errorf("adopt %s: %w", id, err)
		}
	}
	return nil
}

func (a *activation) adoptOne(n *needstate.Need, from string) error {
	if !n.State.Fulfilled.IsZero() {
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
	generation, err := n.Dir.Deliver(files)
	if err != nil {
		return err
	}
	n.State.NotifiedGeneration = generation
	n.Confirm("", hostapi.Answer{})
	n.LookAgain()
	n.Forget()
	a.report(event.Event{Event: event.Adopted, Need: n.ID, Message: from})
	return nil
}
