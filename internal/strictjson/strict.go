package strictjson

import (
	"bytes"
	"cmp"
	"encoding"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"unicode/utf8"
)

// maxDepth is the maximum nesting of values, which is far above the nesting in documents. It is
// limited because requests come from untrusted callers, and the cost of decoding must not grow
// faster than the length of the input.
const maxDepth = 64

// Decode decodes a single JSON value into v, which must be a pointer. It returns an error for JSON
// that a document never contains:
//
//   - unknown fields, and field names in another case, which encoding/json would accept
//   - duplicate fields
//   - null and fractions
//   - more than 64 levels of nesting
//   - data after the value
func Decode(b []byte, v any) error {
	decoded := json.Unmarshal(b, v)
	var invalid *json.SyntaxError
	if errors.As(decoded, &invalid) {
		return decoded
	}
	w := walker{text: b}
	if err := w.value(reflect.TypeOf(v).Elem()); err != nil {
		return err
	}
	return decoded
}

// walker traverses a valid JSON text, together with the Go types into which its values will be
// decoded.
type walker struct {
	text []byte
	at   int    // offset
	path []step // path to the current value
}

// step is one step of a path to a value: the name of a field, or the index of an element if the
// name is empty.
type step struct {
	name  string
	index int
}

// errorf returns an error that begins with the path to the current value.
func (w *walker) errorf(format string, args ...any) error {
	var at strings.Builder
	for _, s := range w.path {
		if s.name != "" {
			at.WriteString("." + s.name)
		} else {
			fmt.Fprintf(&at, "[%d]", s.index)
		}
	}
	if len(w.path) == 0 {
		return fmt.Errorf(format, args...)
	}
	return fmt.Errorf("%s: %w", &at, fmt.Errorf(format, args...))
}

// space skips white space, and returns the first byte of the next token.
func (w *walker) space() byte {
	for strings.IndexByte(" \t\r\n", w.text[w.at]) >= 0 {
		w.at++
	}
	return w.text[w.at]
}

// more reports whether the current list or object has another element. If so, it moves to this
// element.
func (w *walker) more() bool {
	switch w.space() {
	case ']', '}':
		w.at++
		return false
	case ',':
		w.at++
	}
	return true
}

// value checks a value that will be decoded as a value of type t. If t is nil, any type is allowed.
func (w *walker) value(t reflect.Type) error {
	begin := w.space()
	from := w.at
	switch begin {
	case '{', '[':
		if len(w.path) == maxDepth {
			return fmt.Errorf("offset %d: nested deeper than %d", w.at, maxDepth)
		}
		w.at++
		if begin == '{' {
			return w.object(fieldsOf(t))
		}
		e := elem(t)
		for i := 0; w.more(); i++ {
			if err := w.below(step{index: i}, e); err != nil {
				return err
			}
		}
	case '"':
		w.quoted()
	case 'n':
		return w.errorf("null")
	case 't':
		w.at += len("true")
	case 'f':
		w.at += len("false")
	default:
		for w.at < len(w.text) && strings.IndexByte("+-.0123456789Ee", w.text[w.at]) >= 0 {
			w.at++
		}
		if n := string(w.text[from:w.at]); !isInt64(n) {
			return w.errorf("%s is not an integer", n)
		}
	}
	return nil
}

func isInt64(n string) bool {
	_, err := strconv.ParseInt(n, 10, 64)
	return err == nil
}

// quoted skips a string, and returns it as it is written.
func (w *walker) quoted() []byte {
	from := w.at
	for w.at++; w.text[w.at] != '"'; w.at++ {
		if w.text[w.at] == '\\' {
			w.at++
		}
	}
	w.at++
	return w.text[from:w.at]
}

// below checks a value that is one step deeper in the path.
func (w *walker) below(s step, t reflect.Type) error {
	w.path = append(w.path, s)
	err := w.value(t)
	w.path = w.path[:len(w.path)-1]
	return err
}

func (w *walker) object(field func(name string) (reflect.Type, bool)) error {
	seen := map[string]bool{}
	for w.more() {
		w.space()
		written := w.quoted()
		name := string(written[1 : len(written)-1])
		if bytes.IndexByte(written, '\\') >= 0 || !utf8.Valid(written) {
			if err := json.Unmarshal(written, &name); err != nil {
				return err
			}
		}
		t, known := field(name)
		switch {
		case !known:
			return w.errorf("unknown field %q", name)
		case seen[name]:
			w.path = append(w.path, step{name: name})
			return w.errorf("given twice")
		}
		seen[name] = true
		w.space()
		w.at++ // the colon
		if err := w.below(step{name: name}, t); err != nil {
			return err
		}
	}
	return nil
}

// fields caches the fields of types, because it takes longer to find them than to decode a small
// document.
var fields sync.Map // func(string) (reflect.Type, bool) by reflect.Type

// fieldsOf returns a function that maps the name of a field of t to the type of this field.
func fieldsOf(t reflect.Type) func(string) (reflect.Type, bool) {
	if t == nil {
		return findFields(t)
	}
	f, ok := fields.Load(t)
	if !ok {
		f, _ = fields.LoadOrStore(t, findFields(t))
	}
	return f.(func(string) (reflect.Type, bool))
}

func findFields(t reflect.Type) func(string) (reflect.Type, bool) {
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
		name = cmp.Or(name, f.Name)
		if f.IsExported() && !f.Anonymous && name != "-" {
			known[name] = f.Type
		}
	}
	return func(name string) (reflect.Type, bool) {
		t, ok := known[name]
		return t, ok
	}
}

// elem returns the type of the elements of t. It returns nil if the elements may be of any type.
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

// Encode returns v as JSON. All values of the type of v must have a form in JSON: otherwise Encode
// panics.
func Encode(v any) []byte {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}
