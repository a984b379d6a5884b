package compile

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
)

const heapVariable = "GC_INITIAL_HEAP_SIZE"

// elsewhere are the variables by which git works in another repository than that of the directory it
// is given, as it tells its hooks.
var elsewhere = map[string]bool{
	"GIT_COMMON_DIR": true, "GIT_DIR": true, "GIT_INDEX_FILE": true, "GIT_NAMESPACE": true, "GIT_OBJECT_DIRECTORY": true,
	"GIT_PREFIX": true, "GIT_WORK_TREE": true,
}

func name(variable string) string {
	before, _, _ := strings.Cut(variable, "=")
	return before
}

// Environ is this process's environment for Nix. 768 MiB, or a quarter of the
// machine, are set aside before Nix first looks for garbage: of what is computed for
// thousands of hosts most is still in use, and looking took a third of the time. A
// gigabyte is a tenth faster with 10,000 hosts, and takes 140 MiB more of the machine.
// Small clusters never touch it. Nix's git is not led to another repository.
func Environ() []string {
	env := slices.DeleteFunc(os.Environ(), func(v string) bool { return elsewhere[name(v)] })
	var si syscall.Sysinfo_t
	if os.Getenv(heapVariable) != "" || syscall.Sysinfo(&si) != nil {
		return env
	}
	quarter := uint64(si.Totalram) * uint64(si.Unit) / 4
	return append(env, fmt.Sprintf("%s=%d", heapVariable, min(quarter, 768<<20)))
}
