// Package settings reads the settings file of a provider host. The file is HuJSON, which is JSON
// with comments and trailing commas. Each kind of need has a section in the file, and a process of
// its own that reads no other section. Every setting has a default, and the file itself may be
// absent.
//
//	{
//	  "state": "/var/lib/florete-provider",   // contains a directory for each kind
//	  "activation": "/var/lib/florete",       // the policy in force, and the SVIDs of all kinds but "cert"
//	  "retention": {"audit": 365, "answers": 30},  // days
//	  "file": {"dir": "/srv/florete-files"},  // the section of kind "file"
//	}
//
// Paths in the file may be relative to the file.
package settings

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/spiffe"
	"github.com/florete/florete/internal/strictjson"
	"github.com/florete/florete/providers/server"
)

// Kinds lists the kinds of needs that can have settings of their own in the settings file. The
// function for each kind returns an empty section for these settings.
type Kinds map[string]func() server.Section

// Names returns the names of the kinds, sorted.
func (k Kinds) Names() []string { return slices.Sorted(maps.Keys(k)) }

// Common contains the settings for the processes of all kinds.
type Common struct {
	State      string           `json:"state" path:""`
	Activation hostdir.Layout   `json:"activation" path:""`
	Retention  server.Retention `json:"retention"`

	// List is the path of the newest revocation list, which the process of kind config writes for
	// the processes of other kinds on its host. If it is empty, the file is in the runtime
	// directory of that process.
	List string `json:"list" path:""`

	// Store and HostKey are used for a state store that provider hosts share. Store is the
	// directory of the host's certificates for the store, and HostKey the SSH host key to which the
	// store's sealing keys are encrypted. If they are empty, the usual paths apply.
	Store   string `json:"store" path:""`
	HostKey string `json:"hostKey" path:""`
}

// Settings contains the settings for the process of one kind of need.
type Settings struct {
	Common
	Section server.Section // settings of the kind; nil for none
}

// Dir returns the directory in which the process of a kind keeps its state. No other process uses
// it.
func (c Common) Dir(kind string) string { return filepath.Join(c.State, kind) }

// Policy returns the directory that contains the host's current documents, which include the
// policy.
func (c Common) Policy() string { return hostdir.Current(c.Activation.Documents()) }

// Identity returns the directory that contains the SVID of the process of a kind. Activation writes
// the SVID there.
func (c Common) Identity(kind string) string {
	return c.Activation.Need("cert-service-" + spiffe.ProviderService(kind))
}

// File returns the path of the settings file of an instance.
func File(m hostdir.Instance) string { return filepath.Join(m.Etc(), "provider.hujson") }

// Load reads a settings file for the process of a kind. If kind is empty, it reads only the
// settings that all kinds have in common. If the file is the default settings file of the instance
// and does not exist, default settings apply. Any other file must exist.
func Load(m hostdir.Instance, path string, kinds Kinds, kind string) (*Settings, error) {
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && path == File(m) {
		b, err = []byte("{}"), nil
	}
	if errors.Is(err, fs.ErrPermission) { // each kind has an account of its own
		return nil, fmt.Errorf("settings: %w, want a file that all kinds read, which holds no secret itself: chmod 0644 %s", err, path)
	}
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	dir, err := filepath.Abs(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	s, err := parse(b, kinds, kind)
	if err != nil {
		return nil, fmt.Errorf("settings %s%w", path, err)
	}
	each(&s.Common, func(f reflect.StructField, v reflect.Value) { absolute(dir, f, v) })
	s.State = cmp.Or(s.State, string(m.State())+"-provider")
	s.Activation = cmp.Or(s.Activation, m.State())
	if s.Section != nil {
		each(s.Section, func(f reflect.StructField, v reflect.Value) {
			if value, ok := f.Tag.Lookup("default"); ok && v.String() == "" {
				v.SetString(value)
				absolute(s.Dir(kind), f, v)
			}
			absolute(dir, f, v)
		})
	}
	return s, nil
}

// parse parses the settings. The text of its errors begins with the place in the file:
// ":line:column: …" or ": …".
func parse(b []byte, kinds Kinds, kind string) (*Settings, error) {
	v, err := hujson.Parse(b)
	if err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	var s Settings
	known := fields(reflect.TypeFor[Common]())
	for name := range kinds {
		known[name] = nil // another process's
	}
	if section, ok := kinds[kind]; ok {
		s.Section = section()
		known[kind] = reflect.TypeOf(s.Section).Elem()
	} else if kind != "" {
		return nil, fmt.Errorf(": kind %q, want one of %s", kind, strings.Join(kinds.Names(), ", "))
	}
	if err := walk(b, v, known); err != nil {
		return nil, err
	}
	var own []hujson.Value
	if object, ok := v.Value.(*hujson.Object); ok {
		object.Members = slices.DeleteFunc(object.Members, func(m hujson.ObjectMember) bool {
			_, section := kinds[name(m)]
			if name(m) == kind {
				own = append(own, m.Value)
			}
			return section
		})
	}
	if err := decode(v, &s.Common); err != nil {
		return nil, fmt.Errorf(": %w", err)
	}
	if len(own) > 1 {
		return nil, fmt.Errorf(": .%s: given twice", kind)
	}
	if len(own) == 1 {
		if err := decode(own[0], s.Section); err != nil {
			return nil, fmt.Errorf(": .%s: %w", kind, err)
		}
	}
	return &s, nil
}

func decode(v hujson.Value, to any) error {
	v.Standardize()
	return strictjson.Decode(v.Pack(), to)
}

// each calls a function for each field of the struct to which section points.
func each(section any, f func(reflect.StructField, reflect.Value)) {
	v := reflect.ValueOf(section).Elem()
	for i := range v.NumField() {
		f(v.Type().Field(i), v.Field(i))
	}
}

func absolute(dir string, f reflect.StructField, v reflect.Value) {
	if _, path := f.Tag.Lookup("path"); path && v.String() != "" && !filepath.IsAbs(v.String()) {
		v.SetString(filepath.Join(dir, v.String()))
	}
}
