package credentials

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/florete/florete/internal/document"
	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
)

// Found is a credential that the manifest grants to a unit, as Find returns it. It consists of one
// or more files that activation has delivered.
type Found struct {
	files map[string]string // ID of the need, by the name of the file
	whole bool              // a JSON object of all files instead of the content of one file
}

// Find returns the credential that a unit requests by name. The name has one of these forms:
//
//   - "<kind>_<file>" is one file that a need of this kind delivers for the unit's service,
//   - "<kind>" is all files of the kind, and
//   - "<kind>-<need>" is the files of one need, if the service has several of the kind. These
//     needs are called <kind>-<service>-<need>.
//
// A unit belongs to the service with the same name, and to each service with a need that notifies
// the unit of changes. If there is no such credential, the error lists the available ones.
func Find(m document.Manifest, unit, credential string) (Found, error) {
	own := services(m, unit)
	found := Found{files: map[string]string{}}
	kind, file, one := strings.Cut(credential, "_")
	found.whole = !one
	var has []string
	for _, n := range m.Needs {
		if !slices.Contains(own, service(n)) {
			continue
		}
		for _, name := range slices.Sorted(maps.Keys(n.Deliver.Files)) {
			has = append(has, n.Kind+"_"+name)
			if n.Kind != kind && label(n) != kind || one && name != file {
				continue
			}
			other, ok := found.files[name]
			switch {
			case ok && len(own) == 1 && label(n) != "":
				return found, fmt.Errorf("%s and %s of it both deliver %s: load that of one, such as %s_%s", other, n.ID, name, label(n), name)
			case ok:
				return found, fmt.Errorf("%s and %s of it both deliver %s: the unit belongs to several services (%s)", other, n.ID, name, strings.Join(own, ", "))
			}
			found.files[name] = n.ID
		}
	}
	switch {
	case len(has) == 0:
		return found, fmt.Errorf("nothing is delivered for %s on this host: no service has its name, and no need notifies it of a change", unit)
	case len(found.files) == 0:
		return found, fmt.Errorf("%s has no such credential, it has %s", unit, strings.Join(has, ", "))
	}
	return found, nil
}

// services returns the names of the services that a unit belongs to, in sorted order.
func services(m document.Manifest, unit string) (names []string) {
	name, isService := strings.CutSuffix(unit, ".service")
	for _, n := range m.Needs {
		s := service(n)
		notified := slices.Contains(n.OnChange, unit)
		if s != "" && (notified || isService && s == name) {
			names = append(names, s)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// label returns the part of a need's ID that distinguishes it from other needs of the same service
// and kind. It returns "" if there is only one such need.
func label(n document.Need) string {
	name, several := strings.CutPrefix(n.ID, n.Kind+"-"+service(n)+"-")
	if !several {
		return ""
	}
	return n.Kind + "-" + name
}

// service returns the name of the service that a need delivers files to. It returns "" if the files
// are for a node or a user.
func service(n document.Need) string {
	if len(n.Deliver.Files) == 0 || n.For.Kind() != spiffe.KindService {
		return ""
	}
	return n.For.Name()
}

// read reads the files of the credential in their current generations. It returns fs.ErrNotExist if
// a file has not been delivered yet.
func (f Found) read(l hostdir.Layout) ([]byte, error) {
	all := map[string]string{}
	generations := map[string]fs.FS{}
	for name, need := range f.files {
		dir, ok := generations[need]
		if !ok {
			root, err := hostdir.OpenCurrent(l.Need(need))
			if err != nil {
				return nil, fmt.Errorf("need %s: %w", need, errors.Unwrap(err))
			}
			defer root.Close()
			dir = root.FS()
			generations[need] = dir
		}
		b, err := fs.ReadFile(dir, name)
		if err != nil || !f.whole {
			return b, err
		}
		if !utf8.Valid(b) {
			return nil, fmt.Errorf("%s of need %s is not text: load it by its own name", name, need)
		}
		all[name] = string(b)
	}
	return json.Marshal(all)
}
