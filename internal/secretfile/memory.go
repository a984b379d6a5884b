package secretfile

import "golang.org/x/sys/unix"

// ProtectMemory prevents core dumps of this process, and prevents other processes of the same
// account from tracing it or reading its memory (PR_SET_DUMPABLE of prctl(2)). It does not protect
// programs that this process executes. Errors are ignored.
func ProtectMemory() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
