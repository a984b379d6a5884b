package nss

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// PrivateKey checks the permissions of a file with an SSH host key. It returns an error if other
// accounts can read or write the file, because they could impersonate this host. The primary group
// of the file's owner may have access, and so may the group ssh_keys, which Fedora uses.
func PrivateKey(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil // reading the file reports the error
	}
	mode, stat := info.Mode().Perm(), info.Sys().(*syscall.Stat_t)
	if mode&0o007 != 0 || mode&0o070 != 0 && !ownGroup(stat.Uid, stat.Gid) {
		return fmt.Errorf("SSH host key %s: mode %04o lets other accounts have it, want 0600: chmod 0600 %s; and where others may have read it, make another key and declare that in the flake", path, mode, path)
	}
	return nil
}

// ownGroup reports whether gid is the primary group of the account uid, or the group ssh_keys of
// OpenSSH.
func ownGroup(uid, gid uint32) bool {
	id := strconv.FormatUint(uint64(gid), 10)
	if owner, err := LookupID(int(uid)); err == nil && owner.Gid == id {
		return true
	}
	group, err := LookupGroup("ssh_keys")
	return err == nil && group.Gid == id
}
