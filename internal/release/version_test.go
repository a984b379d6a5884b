package release

import (
	"os"
	"runtime/debug"
	"strings"
	"testing"
)

func TestVersion(t *testing.T) {
	commit := debug.BuildSetting{Key: "vcs.revision", Value: "1a2b3c4d5e6f708192a3"}
	for want, settings := range map[string][]debug.BuildSetting{
		Number:                         {{Key: "GOOS", Value: "linux"}},
		Number + "+1a2b3c4d5e6f":       {commit, {Key: "vcs.modified", Value: "false"}},
		Number + "+1a2b3c4d5e6f.dirty": {commit, {Key: "vcs.modified", Value: "true"}},
		Number + "+abc":                {{Key: "vcs.revision", Value: "abc"}},
	} {
		if got := version(settings); got != want {
			t.Errorf("%v: version %s, want %s", settings, got, want)
		}
	}
	text, err := os.ReadFile("../../modules/package.nix")
	if err != nil || !strings.Contains(string(text), `version = "`+Number+`";`) {
		t.Errorf("modules/package.nix has not version %s: %v", Number, err)
	}
}
