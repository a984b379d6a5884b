package settings

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/florete/florete/internal/terminal"
)

// walk returns an error for the first unknown key in a value. The error contains the place of the
// key in the file, and the key that was probably meant. walk does not look into values without a
// type.
func walk(b []byte, v hujson.Value, known map[string]reflect.Type) error {
	object, ok := v.Value.(*hujson.Object)
	if !ok {
		return nil // Decode says what is wrong with the type
	}
	for _, m := range object.Members {
		name := name(m)
		t, ok := known[name]
		if !ok {
			before := b[:m.Name.StartOffset]
			line := bytes.Count(before, []byte("\n")) + 1
			column := len(before) - bytes.LastIndexByte(before, '\n')
			return fmt.Errorf(":%d:%d: unknown key %q: %s", line, column, name, remedy(name, slices.Sorted(maps.Keys(known))))
		}
		if t == nil || t.Kind() != reflect.Struct {
			continue
		}
		if err := walk(b, m.Value, fields(t)); err != nil {
			return err
		}
	}
	return nil
}

// fields returns the types of a struct's fields. The keys are the names of the fields in JSON.
func fields(t reflect.Type) map[string]reflect.Type {
	all := map[string]reflect.Type{}
	for field := range t.Fields() {
		all[field.Tag.Get("json")] = field.Type
	}
	return all
}

func name(m hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

func remedy(name string, known []string) string {
	if near := terminal.Suggest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "want one of " + strings.Join(known, ", ")
}
