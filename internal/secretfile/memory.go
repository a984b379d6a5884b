package secretfile

import "golang.org/x/sys/unix"

// ProtectMemory prevents core dumps of this process. It also prevents other processes of the same
// account from reading the memory of this process or tracing it (prctl(2), PR_SET_DUMPABLE). It
// does not protect programs that this process executes. It ignores errors of old kernels, because
// it is only one of several defences.
func ProtectMemory() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
