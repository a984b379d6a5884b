package strictjson_test

import (
	"encoding/json"
	"runtime"
	"strings"
	"testing"

	"github.com/florete/florete/internal/strictjson"
)

func TestDecodeRefuses(t *testing.T) {
	type U struct{ X int }
	type T struct {
		A int
		B []string
		C *U           `json:"c,omitempty"`
		D map[string]U `json:"d"`
		E []U
		R json.RawMessage
	}
	for name, c := range map[string]struct{ in, want string }{
		"unknown field":  {`{"A":1,"Z":2}`, `unknown field "Z"`},
		"field twice":    {`{"A":1,"A":2}`, ".A: given twice"},
		"letter case":    {`{"a":1}`, `unknown field "a"`},
		"case and twice": {`{"A":1,"a":2}`, `unknown field "a"`},
		"in a pointer":   {`{"c":{"x":1}}`, `.c: unknown field "x"`},
		"in a map":       {`{"d":{"any":{"x":1}}}`, `.d.any: unknown field "x"`},
		"in a list":      {`{"E":[{"X":1},{"x":1}]}`, `.E[1]: unknown field "x"`},
		"tag not name":   {`{"C":{}}`, `unknown field "C"`},
		"raw twice":      {`{"R":{"x":1,"x":1}}`, ".R.x: given twice"},
		"deeply twice":   {`{"E":[{"X":1,"X":1}]}`, ".E[0].X: given twice"},
		"null":           {`{"B":null}`, ".B: null"},
		"fraction":       {`{"A":1.5}`, "1.5 is not an integer"},
		"exponent":       {`{"A":1e3}`, "1e3 is not an integer"},
		"trailing":       {`{"A":1} {}`, "after top-level value"},
		"empty":          {``, "unexpected end"},
		"cut short":      {`{"A":1`, "unexpected end"},
	} {
		var v T
		err := strictjson.Decode([]byte(c.in), &v)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
	}
	var v T
	err := strictjson.Decode([]byte(`{"A":7,"B":["x"],"c":{"X":1},"d":{"any":{"X":2}},"E":[{"X":3}],"R":{"whatever":[{}]}}`), &v)
	if err != nil || v.A != 7 || len(v.B) != 1 || v.C.X != 1 || v.D["any"].X != 2 || v.E[0].X != 3 {
		t.Errorf("plain value: %+v, %v", v, err)
	}
}

// TestDecodeDeep checks that the cost of decoding deeply nested input grows about as its size. This
// is important because providers decode the requests of strangers.
func TestDecodeDeep(t *testing.T) {
	nested := func(open, close string, n int) []byte {
		return []byte(`{"R":` + strings.Repeat(open, n) + "1" + strings.Repeat(close, n) + "}")
	}
	for _, c := range []struct{ open, close string }{{"[", "]"}, {`{"x":`, "}"}} {
		var v struct{ R json.RawMessage }
		if err := strictjson.Decode(nested(c.open, c.close, 63), &v); err != nil {
			t.Errorf("63 of %s: %v", c.open, err)
		}
		in := nested(c.open, c.close, 8<<10)
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		err := strictjson.Decode(in, &v)
		runtime.ReadMemStats(&after)
		if used := after.TotalAlloc - before.TotalAlloc; err == nil || !strings.Contains(err.Error(), "nested deeper than 64") || used > 1<<20 {
			t.Errorf("%d bytes of %s: %v, with %d bytes allocated", len(in), c.open, err, used)
		}
	}
}
