package rules

import (
	"strings"
	"testing"
)

// from the widest to the narrowest, each covers all after it.
var chain = []string{"tenant:acme", "namespace:acme/*", "namespace:acme/payments", "stream:acme/payments/*", "stream:acme/payments/orders"}

func TestCovers(t *testing.T) {
	for i, a := range chain {
		for j, b := range chain {
			x, y := must(t, a), must(t, b)
			if x.Covers(y) != (i <= j) {
				t.Errorf("%s covers %s: %v", a, b, x.Covers(y))
			}
			if o, ok := Intersect(x, y); !ok || o.String() != chain[max(i, j)] {
				t.Errorf("%s and %s: %s, %v", a, b, o, ok)
			}
		}
	}
	for _, pair := range [][2]string{
		{"tenant:acme", "tenant:other"},
		{"tenant:acme", "stream:other/payments/orders"},
		{"namespace:acme/a", "namespace:acme/b"},
		{"namespace:acme/a", "stream:acme/b/x"},
		{"stream:acme/a/*", "cache:acme/a/x"},
		{"stream:acme/a/*", "stream:acme/b/x"},
		{"stream:acme/a/x", "stream:acme/a/xy"},
	} {
		a, b := must(t, pair[0]), must(t, pair[1])
		if o, ok := Intersect(a, b); ok || a.Covers(b) || b.Covers(a) {
			t.Errorf("%s and %s have %s in common", a, b, o)
		}
	}
	if (Object{}).Covers(Object{}) || must(t, "tenant:acme").Covers(Object{}) {
		t.Error("what is no object is covered")
	}
}

func must(t *testing.T, s string) Object {
	t.Helper()
	o, err := ParseObject(s)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func TestObjectRefused(t *testing.T) {
	for s, want := range map[string]string{
		"tenant:*":            "of every tenant",
		"namespace:*/*":       "of every tenant",
		"stream:*/*":          "of every tenant",
		"stream:*/*/*":        "of every tenant",
		"stream:acme/*/*":     "of every namespace",
		"stream:acme/*":       "2 parts",
		"stream:acme/a/b/c":   "4 parts",
		"tenant:acme/a":       "2 parts",
		"namespace:acme":      "1 parts",
		"*":                   "want tenant:T",
		"*:acme/a/b":          "want tenant:T",
		"":                    "want tenant:T",
		"stream:acme/a/":      "name",
		"stream:acme/a/x*":    "name",
		"stream:acme/a/..":    "name",
		"stream:acme/A/x":     "namespace",
		"tenant:Acme":         "tenant",
		"tenant:":             "tenant",
		"tenant:acme\n":       "tenant",
		"stream:acme/a/b c":   "name",
		"stream:acme/a/b,c":   "name",
		" tenant:acme":        "want tenant:T",
		"namespace:acme/pay*": "namespace",
	} {
		if o, err := ParseObject(s); err == nil || !strings.Contains(err.Error(), want) || o != (Object{}) {
			t.Errorf("%q: %v, %v, want %q", s, o, err, want)
		}
	}
	for _, a := range []string{"", "*", "stream.*", "stream publish", "Stream", "a.b.c.d.e", ".a", "a."} {
		if _, err := ParseAction(a); err == nil {
			t.Errorf("action %q", a)
		}
	}
}

// FuzzParse checks that an accepted object is written as it was read.
func FuzzParse(f *testing.F) {
	for _, s := range chain {
		f.Add(s)
	}
	f.Add("stream:*/*")
	f.Fuzz(func(t *testing.T, s string) {
		o, err := ParseObject(s)
		if err == nil && (o.String() != s || !o.Covers(o) || !TenantObject(o.Tenant()).Covers(o) || o.Tenant() == Any) {
			t.Errorf("%q is read as %q", s, o)
		}
	})
}
