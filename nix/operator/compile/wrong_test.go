package compile

import (
	"os/exec"
	"strings"
	"testing"
)

// TestWrongValuesAreFaults checks that a wrong value is a fault wherever it is written, and never
// an evaluation error, which would hide all other faults: a value in its place is compared and
// computed with like a right one.
func TestWrongValuesAreFaults(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "nix-instantiate", "--eval", "--strict", "-E",
		`import ./testdata/wrong.nix { cases = [ "cordon" "facts" "limits" "placement" "until" ]; }`)
	var stderr strings.Builder
	cmd.Stderr = &stderr
	if out, err := cmd.Output(); err != nil || len(strings.TrimSpace(string(out))) < 3 {
		said := stderr.String()
		t.Errorf("%v, %s evaluated: %s", err, out, said[max(0, strings.LastIndex(said, "trace: ")):])
	}
}
