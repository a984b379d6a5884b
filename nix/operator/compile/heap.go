package compile

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

const heapVariable = "GC_INITIAL_HEAP_SIZE"

// elsewhere lists environment variables with which git uses another repository than the one in the
// given directory. git sets these variables for its hooks.
var elsewhere = map[string]bool{
	"GIT_COMMON_DIR": true, "GIT_DIR": true, "GIT_INDEX_FILE": true, "GIT_NAMESPACE": true, "GIT_OBJECT_DIRECTORY": true,
	"GIT_PREFIX": true, "GIT_WORK_TREE": true,
}

func name(variable string) string {
	before, _, _ := strings.Cut(variable, "=")
	return before
}

// Environ returns the environment variables for running Nix from this process. They make Nix start
// with a heap of 768 MiB, or of a quarter of the machine's memory if that is less, because for a
// large cluster Nix otherwise spends a third of its time on garbage collection. Environ leaves out
// variables that would make git use another repository.
func Environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return elsewhere[name(v)] })
	var si syscall.Sysinfo_t
	if os.Getenv(heapVariable) != "" || syscall.Sysinfo(&si) != nil {
		return env
	}
	quarter := uint64(si.Totalram) * uint64(si.Unit) / 4
	return append(env, fmt.Sprintf("%s=%d", heapVariable, min(quarter, 768<<20)))
}
