package tests

import (
	"os/exec"
	"strings"
	"testing"
)

// TestRaceExceptions: each flag that leaves packages out of the race detector matches packages that
// are compiled. Go says nothing about a pattern that matches none, and bcrypt takes twelve times as
// long with the detector.
func TestRaceExceptions(t *testing.T) {
	out, err := exec.Command("bash", "-c", `. ./setup && printf '%s\n' "${race[@]}"`, "setup").Output()
	if err != nil {
		t.Fatal(err)
	}
	exceptions := 0
	for flag := range strings.Lines(string(out)) {
		flag = strings.TrimSpace(flag)
		pattern, found := strings.CutPrefix(flag, "-gcflags=")
		pattern, ok := strings.CutSuffix(pattern, "=-race=false")
		if !found || !ok {
			if flag != "-race" {
				t.Errorf("flag %s, want -race or -gcflags=PATTERN=-race=false", flag)
			}
			continue
		}
		exceptions++
		listed, err := exec.Command("go", "list", pattern).Output()
		if err != nil || len(listed) == 0 {
			t.Errorf("pattern %s matches no package (%v)", pattern, err)
		}
	}
	if exceptions == 0 {
		t.Error("no package is left out of the race detector")
	}
}
