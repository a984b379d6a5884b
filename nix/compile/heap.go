package compile

import (
	"fmt"
	"os"
	"syscall"
)

const heapVariable = "GC_INITIAL_HEAP_SIZE"

// Environ is this process's environment for Nix. 768 MiB, or a quarter of the
// machine, are set aside before Nix first looks for garbage: of what is computed for
// thousands of hosts most is still in use, and looking took a third of the time. A
// gigabyte is a tenth faster with 10,000 hosts, and takes 140 MiB more of the machine.
// Small clusters never touch it.
func Environ() []string {
	env := os.Environ()
	var si syscall.Sysinfo_t
	if os.Getenv(heapVariable) != "" || syscall.Sysinfo(&si) != nil {
		return env
	}
	quarter := uint64(si.Totalram) * uint64(si.Unit) / 4
	return append(env, fmt.Sprintf("%s=%d", heapVariable, min(quarter, 768<<20)))
}
