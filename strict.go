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

// Decode reads exactly one JSON value into v, a pointer. It refuses what
// builtins.toJSON of our documents never writes: unknown fields, a field in other
// letter case (which encoding/json takes), a field twice, nulls, fractions, and
// anything after the value.
func Decode(b []byte, v any) error {
	w := walker{json.NewDecoder(bytes.NewReader(b))}
	w.UseNumber()
	if err := w.value("", reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	if _, err := w.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("offset %d: text after the value", w.InputOffset())
	}
	return json.Unmarshal(b, v)
}

// walker reads values token by token, along the types they will have.
type walker struct{ *json.Decoder }

// value reads one value that becomes a t, nil for any.
func (w walker) value(path string, t reflect.Type) error {
	token, err := w.Token()
	if err != nil {
		return err
	}
	switch token := token.(type) {
	case nil:
		return fmt.Errorf("%s: null", path)
	case json.Number:
		if _, err := token.Int64(); err != nil {
			return fmt.Errorf("%s: %s is not an integer", path, token)
		}
	case json.Delim:
		if token == '{' {
			return w.object(path, fieldsOf(t))
		}
		for i := 0; w.More(); i++ {
			if err := w.value(fmt.Sprintf("%s[%d]", path, i), elem(t)); err != nil {
				return err
			}
		}
		_, err = w.Token()
		return err
	}
	return nil
}

func (w walker) object(path string, field func(name string) (reflect.Type, bool)) error {
	seen := map[string]bool{}
	for w.More() {
		token, err := w.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string)
		if seen[name] {
			return fmt.Errorf("%s.%s: given twice", path, name)
		}
		seen[name] = true
		t, known := field(name)
		if !known {
			return fmt.Errorf("%s: unknown field %q", path, name)
		}
		if err := w.value(path+"."+name, t); err != nil {
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
