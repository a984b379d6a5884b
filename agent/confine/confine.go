// Package confine has the kernel refuse to this process all files that the forwarder does not
// open (Landlock), besides what its unit refuses: whoever takes the process over by its network
// does not get those either. It is not undone.
package confine

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"github.com/florete/florete"
)

// public are directories where the forwarder, Go and the C library's files for names are:
// everybody may read them. Files that are replaced, such as resolv.conf, need their directory.
var public = []string{"/etc", "/nix/store", "/proc", "/sys/fs/cgroup", "/usr/share/zoneinfo"}

const (
	read  landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSReadDir
	serve landlock.AccessFSSet = read | ll.AccessFSMakeSock | ll.AccessFSRemoveFile
)

// Agent leaves to this process the files of a forwarder: to read what activation keeps and what
// is public, and Unix sockets to make and remove beside its own. It may connect to any. The
// error is why nothing is refused, or not all: the kernel does not have Landlock, or the unit
// does not let it be used.
func Agent(state florete.Layout, socket string) error {
	names := []string{}
	if resolv, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
		names = append(names, filepath.Dir(resolv))
	}
	err := landlock.V5.BestEffort().RestrictPaths(
		landlock.PathAccess(read, string(state)),
		landlock.PathAccess(serve, filepath.Dir(socket)),
		landlock.PathAccess(read, append(names, public...)...).IgnoreIfMissing(),
	)
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return inForce()
}

// inForce tries what must be refused.
func inForce() error {
	f, err := os.Open("/")
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err == nil {
		f.Close()
	}
	return errors.New("landlock: not in force: the kernel does not have it, see /sys/kernel/security/lsm, or the unit's SystemCallFilter= lacks it")
}
