package secretfile

import "golang.org/x/sys/unix"

// ProtectMemory has the kernel write no core of this process, and let no other process of its account
// read its memory or trace it (prctl(2), PR_SET_DUMPABLE). What it executes is not protected. An
// error, of a kernel that does not know it, is passed over: it is one line of defence of several.
func ProtectMemory() { _ = unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0) }
