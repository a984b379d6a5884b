package compile

import (
	"os/exec"
	"strings"
	"testing"
)

// A wrong value is a fault wherever it is written, and never an error of the evaluation, which
// would hide all other faults: what stands for it is compared and computed with like a right one.
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
