package server_test

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/florete/florete/providers/server"
)

// TestTuneRuntime runs in a process of its own, because the tested settings affect a whole process.
func TestTuneRuntime(t *testing.T) {
	t.Parallel()
	const role = "FLORETE_TEST_TUNED"
	if os.Getenv(role) != "" {
		was := runtime.GOMAXPROCS(0)
		server.TuneRuntime()
		server.TuneRuntime()
		os.Stdout.WriteString("more: " + strconv.Itoa(runtime.GOMAXPROCS(0)-was) + "\n")
		return
	}
	without := slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "GOMAXPROCS=") })
	for env, want := range map[string]string{"": "more: 2\n", "GOMAXPROCS=1": "more: 0\n"} {
		c := exec.Command(os.Args[0], "-test.run=^TestTuneRuntime$")
		c.Env = append(slices.Clone(without), role+"=1", env)
		if out, err := c.CombinedOutput(); err != nil || !strings.HasPrefix(string(out), want) {
			t.Errorf("%q: %s, error %v, want %q", env, out, err, want)
		}
	}
}
