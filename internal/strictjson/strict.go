package strictjson

import (
	"bytes"
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

// maxDepth is how deep values nest at most, far beyond what documents do. Strangers
// send requests: what reading one costs must not grow faster than its length.
const maxDepth = 64

// Decode reads exactly one JSON value into v, a pointer. It refuses what
// builtins.toJSON of our documents never writes: unknown fields, a field in other
// letter case (which encoding/json takes), a field twice, nulls, fractions, values
// nested deeper than 64, and anything after the value.
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

// walker reads the values of a JSON text, which is valid, along the types they will have.
type walker struct {
	text []byte
	at   int    // offset
	path []step // to the value that is read
}

// step is the name of a field, or where that is empty an index in a list.
type step struct {
	name  string
	index int
}

// errorf is an error at the path.
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

// space goes on to the next token, and returns how that begins.
func (w *walker) space() byte {
	for strings.IndexByte(" \t\r\n", w.text[w.at]) >= 0 {
		w.at++
	}
	return w.text[w.at]
}

// more is whether a list or an object has another element, to which it goes on.
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

// value reads one value that becomes a t, nil for any.
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

// quoted goes past a string, and returns it as it is written.
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

// below reads a value one step further down.
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

// fields are those of the types that were met, since finding them takes longer than reading
// a small document.
var fields sync.Map // of func(string) (reflect.Type, bool), by reflect.Type

// fieldsOf tells the type of each field of an object that becomes a t.
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
