package secretfile

import "golang.org/x/sys/unix"

// ProtectMemory prevents core dumps of this process, and keeps other processes of its account from
// reading its memory or tracing it (prctl(2), PR_SET_DUMPABLE). Programs that it executes are not
// protected. Errors of old kernels are ignored, because this is only one of several defences.
func ProtectMemory() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
