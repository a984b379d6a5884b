package main

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/florete/florete/providers/own"
	"github.com/florete/florete/providers/server"
	"github.com/florete/florete/providers/settings"
)

// TestSettingsPage checks that the page has every setting and no other, and marks required
// settings.
func TestSettingsPage(t *testing.T) {
	const page = "../../../docs/reference/provider-settings.md"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	documented := map[string]bool{} // whether it is required
	for _, row := range regexp.MustCompile("(?m)^\\| `([a-zA-Z.]+)` \\| (.*?) \\|").FindAllSubmatch(b, -1) {
		documented[string(row[1])] = string(row[2]) == "**required**"
	}
	want := map[string]bool{}
	settingsOf(reflect.TypeFor[settings.Common](), "", want)
	for kind, section := range kinds {
		settingsOf(reflect.TypeOf(section()).Elem(), kind+".", want)
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		required, is := documented[name]
		switch {
		case !is:
			t.Errorf("%s: no row `%s`", page, name)
		case required != want[name]:
			t.Errorf("%s: `%s` is required: %t, want %t", page, name, required, want[name])
		}
	}
	for name := range documented {
		if _, is := want[name]; !is {
			t.Errorf("%s: `%s`, want no such row: there is no such setting", page, name)
		}
	}
}

// settingsOf notes the settings of a struct, by the names that they have in the file.
func settingsOf(section reflect.Type, prefix string, all map[string]bool) {
	for i := range section.NumField() {
		f := section.Field(i)
		name := f.Tag.Get("json")
		switch {
		case name == "":
		case f.Type.Kind() == reflect.Struct && f.Tag.Get("path") == "" && f.Type.NumField() > 0 && f.Type.Field(0).Tag.Get("json") != "":
			settingsOf(f.Type, prefix+name+".", all)
		default:
			all[prefix+name] = f.Tag.Get("want") != ""
		}
	}
}

// TestStatePage checks that the page marks exactly the keys that a backup contains as backed up.
func TestStatePage(t *testing.T) {
	const page = "../../../docs/reference/provider-state.md"
	b, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	all := slices.Collect(maps.Values(kinds))
	all = append(all, func() server.Section { return own.Section("<kind>") })
	backed := map[string]bool{} // what a backup has, and whether the page says so
	for _, section := range all {
		for _, prefix := range server.StateOf(section()).Remembered {
			backed[prefix] = false
		}
	}
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+/[^`]+)`.* \\| (yes|no)[^|]*\\|$").FindAllSubmatch(b, -1) {
		key := string(row[1])
		has := false
		for prefix := range backed {
			if strings.HasPrefix(key, prefix) {
				backed[prefix], has = true, true
			}
		}
		if says := string(row[2]) == "yes"; says != has {
			t.Errorf("%s: `%s` is backed up: %t, want %t", page, key, says, has)
		}
	}
	for prefix, found := range backed {
		if !found {
			t.Errorf("%s: no key that begins with `%s`, which a backup has", page, prefix)
		}
	}
}
