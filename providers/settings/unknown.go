package settings

import (
	"bytes"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// unknown refuses the first key in v that the struct to does not have, with its
// place in the file b and the key that was probably meant.
func unknown(b []byte, v hujson.Value, to any) error {
	return walk(b, v, reflect.TypeOf(to).Elem())
}

func walk(b []byte, v hujson.Value, t reflect.Type) error {
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
		name := m.Name.Value.(hujson.Literal).String()
		field, ok := fields[name]
		if !ok {
			before := b[:m.Name.StartOffset]
			line := bytes.Count(before, []byte("\n")) + 1
			column := len(before) - bytes.LastIndexByte(before, '\n')
			return fmt.Errorf(":%d:%d: unknown key %q: %s", line, column, name, remedy(name, names))
		}
		if field.Kind() == reflect.Pointer {
			field = field.Elem()
		}
		if err := walk(b, m.Value, field); err != nil {
			return err
		}
	}
	return nil
}

func remedy(name string, known []string) string {
	best := slices.MinFunc(known, func(x, y string) int { return distance(name, x) - distance(name, y) })
	if distance(name, best) <= 2 {
		return fmt.Sprintf("did you mean %q?", best)
	}
	return "want one of " + strings.Join(known, ", ")
}

// distance is the Levenshtein distance of two short names, case aside.
func distance(a, b string) int {
	a, b = strings.ToLower(a), strings.ToLower(b)
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := diagonal
			if a[i] != b[j] {
				cost = 1 + min(diagonal, row[j], row[j+1])
			}
			diagonal, row[j+1] = row[j+1], cost
		}
	}
	return row[len(b)]
}
