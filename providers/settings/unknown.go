package settings

import (
	"bytes"
	"fmt"
	"reflect"
	"strings"

	"github.com/tailscale/hujson"

	"github.com/florete/florete/nix/nearest"
)

// walk refuses the first key in v that the struct t does not have, with its place in the
// file b and the key that was probably meant. It does not look into what is skipped.
func walk(b []byte, v hujson.Value, t reflect.Type, skipped map[string]bool) error {
	object, ok := v.Value.(*hujson.Object)
	if !ok || t.Kind() != reflect.Struct {
		return nil // Decode says what is wrong with the type
	}
	fields := map[string]reflect.Type{}
	var names []string
	for i := range t.NumField() {
		f := t.Field(i)
		name := f.Tag.Get("json")
		names = append(names, name)
		fields[name] = f.Type
	}
	for _, m := range object.Members {
		name := name(m)
		field, ok := fields[name]
		if !ok {
			before := b[:m.Name.StartOffset]
			line := bytes.Count(before, []byte("\n")) + 1
			column := len(before) - bytes.LastIndexByte(before, '\n')
			return fmt.Errorf(":%d:%d: unknown key %q: %s", line, column, name, remedy(name, names))
		}
		if skipped[name] {
			continue
		}
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		if err := walk(b, m.Value, field, nil); err != nil {
			return err
		}
	}
	return nil
}

func name(m hujson.ObjectMember) string { return m.Name.Value.(hujson.Literal).String() }

func remedy(name string, known []string) string {
	if near := nearest.Name(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	return "want one of " + strings.Join(known, ", ")
}
