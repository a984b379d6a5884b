package hostdir_test

import (
	"os"
	"strings"
	"testing"

	"github.com/florete/florete/internal/hostdir"
)

func TestNeedStateRefuses(t *testing.T) {
	l := hostdir.Layout(t.TempDir())
	if err := os.MkdirAll(l.Need("a"), 0o755); err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		``:                                  "unexpected end",
		`{"state":"on fire"}`:               `state "on fire": not a state of a need`,
		`{"state":"waiting"}{}`:             "after top-level value",
		`{"stat":"waiting"}`:                "unknown field",
		strings.Repeat("[", 1000):           "",
		`{"state":"waiting","next":-1}`:     "time -1: want Unix seconds",
		`{"state":"waiting","attempts":-1}`: "a count below zero",
		`{"state":"waiting","next":"soon"}`: "invalid syntax",
	} {
		if err := os.WriteFile(l.NeedStateFile("a"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		if _, err := l.NeedState("a"); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	if err := os.MkdirAll(l.NeedStateFile("b"), 0o755); err != nil {
		t.Fatal(err)
	}
	if s, err := l.NeedState("b"); err == nil {
		t.Errorf("a directory: %+v", s)
	}
}
