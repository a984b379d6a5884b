package compile

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

var example = regexp.MustCompile("(?s)```nix\n(.*?)```")

// The examples of the language say nothing that the language does not know. Keys are
// cut short there, and what else a topology has to have is elsewhere.
func TestReadmeSpeaksTheLanguage(t *testing.T) {
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(readme), "## The language by example")
	text, _, _ = strings.Cut(text, "## What comes out")
	examples := example.FindAllStringSubmatch(text, -1)
	if len(examples) < 7 {
		t.Fatalf("found %d examples", len(examples))
	}
	for _, e := range examples {
		var faults []Fault
		nixEval(t, `((import ../../.).mkCluster { `+e[1]+` }).faults`, &faults)
		for _, f := range faults {
			form := f.ID == "FL001" || f.ID == "FL002" || f.ID == "FL009"
			if form && !strings.HasSuffix(f.Place, ".sshHostKey") && f.Place != "mkCluster" {
				t.Errorf("%s\nin\n%s", f, e[1])
			}
		}
	}
}
