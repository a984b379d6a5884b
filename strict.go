package florete

import (
	"bytes"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
)

// maxDepth is how deep values nest at most, far beyond what documents do. Strangers
// send requests: what reading one costs must not grow faster than its length.
const maxDepth = 64

// Decode reads exactly one JSON value into v, a pointer. It refuses what
// builtins.toJSON of our documents never writes: unknown fields, a field in other
// letter case (which encoding/json takes), a field twice, nulls, fractions, values
// nested deeper than 64, and anything after the value.
func Decode(b []byte, v any) error {
	w := walker{Decoder: json.NewDecoder(bytes.NewReader(b))}
	w.UseNumber()
	if err := w.value(reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	if _, err := w.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("offset %d: text after the value", w.InputOffset())
	}
	return json.Unmarshal(b, v)
}

// walker reads values token by token, along the types they will have.
type walker struct {
	*json.Decoder
	path []any // to the value that is read: names of fields, indices in lists
}

// errorf is an error at the path.
func (w *walker) errorf(format string, args ...any) error {
	var at strings.Builder
	for _, step := range w.path {
		switch step := step.(type) {
		case string:
			at.WriteString("." + step)
		default:
			fmt.Fprintf(&at, "[%d]", step)
		}
	}
	return fmt.Errorf("%s: %w", &at, fmt.Errorf(format, args...))
}

// value reads one value that becomes a t, nil for any.
func (w *walker) value(t reflect.Type) error {
	token, err := w.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case nil:
		return w.errorf("null")
	case json.Number:
		if _, err := token.Int64(); err != nil {
			return w.errorf("%s is not an integer", token)
		}
	case json.Delim:
		if len(w.path) == maxDepth {
			return fmt.Errorf("offset %d: nested deeper than %d", w.InputOffset(), maxDepth)
		}
		if token == '{' {
			return w.object(fieldsOf(t))
		}
		for i := 0; w.More(); i++ {
			if err := w.below(i, elem(t)); err != nil {
				return err
			}
		}
		_, err = w.Token()
		return err
	}
	return nil
}

// below reads a value one step further down.
func (w *walker) below(step any, t reflect.Type) error {
	w.path = append(w.path, step)
	err := w.value(t)
	w.path = w.path[:len(w.path)-1]
	return err
}

func (w *walker) object(field func(name string) (reflect.Type, bool)) error {
	seen := map[string]bool{}
	for w.More() {
		token, err := w.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		t, known := field(name)
		switch {
		case !known:
			return w.errorf("unknown field %q", name)
		case seen[name]:
			w.path = append(w.path, name)
			return w.errorf("given twice")
		}
		seen[name] = true
		if err := w.below(name, t); err != nil {
			return err
		}
	}
	_, err := w.Token()
	return err
}

// fieldsOf tells the type of each field of an object that becomes a t.
func fieldsOf(t reflect.Type) func(string) (reflect.Type, bool) {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct || decodesItself(t) {
		e := elem(t)
		return func(string) (reflect.Type, bool) { return e, true }
	}
	known := map[string]reflect.Type{}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if name == "" {
			name = f.Name
		}
		if f.IsExported() && !f.Anonymous && name != "-" {
			known[name] = f.Type
		}
	}
	return func(name string) (reflect.Type, bool) {
		t, ok := known[name]
		return t, ok
	}
}

// elem is the type of the elements of a t, nil when they may be anything.
func elem(t reflect.Type) reflect.Type {
	if t == nil || decodesItself(t) {
		return nil
	}
	switch t.Kind() {
	case reflect.Pointer:
		return elem(t.Elem())
	case reflect.Slice, reflect.Array, reflect.Map:
		return t.Elem()
	}
	return nil
}

func decodesItself(t reflect.Type) bool {
	p := reflect.PointerTo(t)
	return p.Implements(reflect.TypeFor[json.Unmarshaler]()) || p.Implements(reflect.TypeFor[encoding.TextUnmarshaler]())
}
