package program

import (
	"bytes"
	"fmt"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
)

// Tool compiles a third-party program and returns its path. The program is listed as a tool in the
// Go module tests/<module>. It is compiled without cgo in net and os/user, like the programs of the
// product, so that both share compiled packages.
func Tool(module, name string) (string, error) {
	_, here, _, _ := runtime.Caller(0)
	cmd := exec.Command(filepath.Join(filepath.Dir(here), "tool"), name)
	cmd.Dir = filepath.Join(filepath.Dir(filepath.Dir(here)), module)
	var problem bytes.Buffer
	cmd.Stderr = &problem
	path, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("%s of tests/%s: %w: %s", name, module, err, problem.String())
	}
	return strings.TrimSpace(string(path)), nil
}
