package main

import (
	"maps"
	"os"
	"reflect"
	"regexp"
	"slices"
	"testing"

	"github.com/florete/florete/providers/settings"
)

// TestSettingsPage: the page has every setting, those that are required as such, and no other.
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
