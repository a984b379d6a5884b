package nss

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
)

// PrivateKey returns an error where other accounts can read or write an SSH host key: any of them could be
// this host. The group of the key's owner may, and one that exists for host keys, as on Fedora.
func PrivateKey(path string) error {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil // reading it reports why
	}
	mode, stat := info.Mode().Perm(), info.Sys().(*syscall.Stat_t)
	if mode&0o007 != 0 || mode&0o070 != 0 && !ownGroup(stat.Uid, stat.Gid) {
		return fmt.Errorf("SSH host key %s: mode %04o lets other accounts have it, want 0600: chmod 0600 %s; and where others may have read it, make another key and declare that in the flake", path, mode, path)
	}
	return nil
}

// ownGroup reports whether a group is that of the account, or of programs that OpenSSH has for its
// host keys.
func ownGroup(uid, gid uint32) bool {
	id := strconv.FormatUint(uint64(gid), 10)
	if owner, err := LookupID(int(uid)); err == nil && owner.Gid == id {
		return true
	}
	group, err := LookupGroup("ssh_keys")
	return err == nil && group.Gid == id
}
