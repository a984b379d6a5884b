package compile

import (
	"slices"
	"strings"
	"testing"
)

func TestEnviron(t *testing.T) {
	is := func(s string) bool { return strings.HasPrefix(s, heapVariable+"=") }
	t.Setenv(heapVariable, "")
	env := Environ()
	if last := env[len(env)-1]; !is(last) || last == heapVariable+"=0" || len(last) < len(heapVariable)+8 {
		t.Errorf("got %q", last)
	}
	t.Setenv(heapVariable, "2G")
	if env := Environ(); env[slices.IndexFunc(env, is)] != heapVariable+"=2G" || slices.IndexFunc(env, is) != len(env)-1 && is(env[len(env)-1]) {
		t.Error("what the operator chose is not left alone")
	}
}
