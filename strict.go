package florete

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// Decode reads exactly one JSON value into v. It refuses what builtins.toJSON of
// our documents never writes: unknown fields, a field twice, nulls, fractions,
// and anything after the value.
func Decode(b []byte, v any) error {
	if err := plain(json.NewDecoder(bytes.NewReader(b))); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode(v)
}

// plain walks the tokens of one value.
func plain(d *json.Decoder) error {
	d.UseNumber()
	if err := value(d, ""); err != nil {
		return err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return fmt.Errorf("offset %d: text after the value", d.InputOffset())
	}
	return nil
}

func value(d *json.Decoder, path string) error {
	t, err := d.Token()
	if err != nil {
		return err
	}
	switch t := t.(type) {
	case nil:
		return fmt.Errorf("%s: null", path)
	case json.Number:
		if _, err := t.Int64(); err != nil {
			return fmt.Errorf("%s: %s is not an integer", path, t)
		}
	case json.Delim:
		if t == '{' {
			return object(d, path)
		}
		for i := 0; d.More(); i++ {
			if err := value(d, fmt.Sprintf("%s[%d]", path, i)); err != nil {
				return err
			}
		}
		_, err = d.Token()
		return err
	}
	return nil
}

func object(d *json.Decoder, path string) error {
	seen := map[string]bool{}
	for d.More() {
		t, err := d.Token()
		if err != nil {
			return err
		}
		k, _ := t.(string)
		if seen[k] {
			return fmt.Errorf("%s.%s: given twice", path, k)
		}
		seen[k] = true
		if err := value(d, path+"."+k); err != nil {
			return err
		}
	}
	_, err := d.Token()
	return err
}
