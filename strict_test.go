package florete_test

import (
	"strings"
	"testing"

	"florete"
)

func TestDecodeRefuses(t *testing.T) {
	type T struct {
		A int
		B []string
	}
	for name, c := range map[string]struct{ in, want string }{
		"unknown field": {`{"A":1,"C":2}`, `unknown field "C"`},
		"field twice":   {`{"A":1,"A":2}`, ".A: given twice"},
		"deeply twice":  {`{"B":[{"x":1,"x":1}]}`, ".B[0].x: given twice"},
		"null":          {`{"B":null}`, ".B: null"},
		"fraction":      {`{"A":1.5}`, "1.5 is not an integer"},
		"exponent":      {`{"A":1e3}`, "1e3 is not an integer"},
		"trailing":      {`{"A":1} {}`, "text after the value"},
		"empty":         {``, "EOF"},
		"cut short":     {`{"A":1`, "EOF"},
	} {
		var v T
		err := florete.Decode([]byte(c.in), &v)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	var v T
	if err := florete.Decode([]byte(`{"A":7,"B":["x"]}`), &v); err != nil || v.A != 7 || len(v.B) != 1 {
		t.Errorf("plain value: %+v, %v", v, err)
	}
}
