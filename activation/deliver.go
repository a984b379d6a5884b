package activation

import (
	"cmp"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/florete/florete/activation/delivery"
	"github.com/florete/florete/activation/event"
	"github.com/florete/florete/activation/fetch"
	"github.com/florete/florete/activation/needstate"
	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostapi"
	"github.com/florete/florete/internal/hostdir"
)

// deliverBundle updates the root certificates that are stored beside a delivered certificate when
// the manifest in force lists other roots. No request to a provider is needed, because the manifest
// alone decides which roots are trusted. A certificate that is being requested gets the new roots
// when it is delivered.
func (a *activation) deliverBundle(n *needstate.Need) {
	if n.Kind != document.KindCert || n.Foreign || n.State.Digest != n.Digest {
		return
	}
	values := map[string]string{}
	for name, f := range n.Deliver.Files {
		b, err := os.ReadFile(filepath.Join(hostdir.Current(n.Dir.Path), name))
		if err != nil {
			return
		}
		values[f.Value] = string(b)
	}
	had, delivers := values["bundle"]
	values["bundle"] = fetch.Bundle(a.host.Manifest.Trust.Roots)
	if !delivers || had == values["bundle"] {
		return
	}
	if _, err := a.deliver(n, a.deliverTo(n.Need), values); err != nil {
		a.report(event.Event{Event: event.Disk, Need: n.ID, Message: "bundle: " + err.Error()})
		return
	}
	a.report(event.Event{Event: event.Bundle, Need: n.ID})
}

// deliverTo returns how the files of a need are delivered. Certificates and JWTs whose need
// declares no owner belong to the account in Config.Owner.
func (a *activation) deliverTo(n document.Need) document.Deliver {
	d := n.Deliver
	if n.Kind == document.KindCert || n.Kind == document.KindJWT {
		d.Owner = cmp.Or(d.Owner, a.Owner)
	}
	return d
}

// adopt fulfils needs with files that an administrator placed on the host, as Config.Adopt
// describes. The files become the first generation of the need. No provider is asked and no unit is
// restarted. A need that was already fulfilled keeps its files.
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
	generation, err := a.deliver(n, n.Deliver, values)
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

// deliver writes the values of an answer to the files of a need, and returns the number of the
// generation that contains them.
func (a *activation) deliver(n *needstate.Need, d document.Deliver, values map[string]string) (int, error) {
	uid, gid, err := a.owner(d)
	if err != nil {
		return 0, err
	}
	files, failed := files(n.Need, values, uid, gid)
	if failed != nil {
		return 0, failed
	}
	return n.Dir.Deliver(files)
}

// files returns the files that a need delivers, with the content taken from values. The keys of
// values are the names by which the need's declaration refers to them.
func files(n document.Need, values map[string]string, uid, gid int) (map[string]delivery.File, *hostapi.Error) {
	files := map[string]delivery.File{}
	for name, f := range n.Deliver.Files {
		value, ok := values[f.Value]
		if !ok {
			return nil, hostapi.Errorf(hostapi.CodeMalformed, "answer has no value %q for file %s", f.Value, name)
		}
		mode, err := f.Perm()
		if err != nil {
			return nil, hostapi.Errorf(hostapi.CodeMalformed, "file %s: %v", name, err)
		}
		files[name] = delivery.File{Data: []byte(value), Mode: fs.FileMode(mode), UID: uid, GID: gid}
	}
	return files, nil
}

// owner returns the user and group that own the files of a delivery. A value of -1 means the user
// or group of this process.
func (a *activation) owner(d document.Deliver) (uid, gid int, err error) {
	if a.Undivided {
		return -1, -1, nil
	}
	return delivery.Owner(d)
}
