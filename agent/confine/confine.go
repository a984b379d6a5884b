// Package confine uses Landlock to restrict the forwarder to the files it needs, so that a remote
// attacker who takes over the process cannot read others. The restriction is permanent and is in
// addition to that of the systemd unit.
package confine

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"

	"github.com/landlock-lsm/go-landlock/landlock"
	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

	"github.com/florete/florete/internal/hostdir"
	"github.com/florete/florete/internal/nss"
)

// public are directories where the forwarder, Go and the C library's files for names are:
// everybody may read them. Files that are replaced, such as resolv.conf, need their directory.
var public = []string{"/etc", "/nix/store", "/proc", "/sys/fs/cgroup", "/usr/share/zoneinfo"}

const (
	read  landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSReadDir
	start landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSExecute
	serve landlock.AccessFSSet = read | ll.AccessFSMakeSock | ll.AccessFSRemoveFile
)

// libraries are the directories of the C library and of the accounts that it reads: getent(1), which the forwarder
// starts, needs them. Those of NixOS are in its store.
var libraries = []string{"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/var/lib/sss/mc", "/var/lib/extrausers"}

// Agent leaves to this process the files of a forwarder: to read what activation keeps and what
// is public, Unix sockets to make and remove beside its own, and getent(1) to start. It may connect
// to any. The
// error is why nothing is refused, or not all: the kernel does not have Landlock, or the unit
// does not let it be used.
func Agent(state hostdir.Layout, socket string) error {
	names := []string{}
	if resolv, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
		names = append(names, filepath.Dir(resolv))
	}
	var programs []string
	if getent := nss.Program(); getent != "" {
		programs = append(programs, getent)
		if loader := loader(getent); loader != "" {
			programs = append(programs, loader)
		}
	}
	err := landlock.V5.BestEffort().RestrictPaths(
		landlock.PathAccess(read, string(state)),
		landlock.PathAccess(serve, filepath.Dir(socket)),
		landlock.PathAccess(read, slices.Concat(names, public, libraries)...).IgnoreIfMissing(),
		landlock.PathAccess(start, programs...).IgnoreIfMissing(),
	)
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return inForce()
}

// loader returns the program that loads a program's libraries, which the kernel starts; empty for
// none.
func loader(program string) string {
	f, err := elf.Open(program)
	if err != nil {
		return ""
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			b, err := io.ReadAll(io.LimitReader(p.Open(), 4096))
			if err != nil {
				return ""
			}
			return string(bytes.TrimRight(b, "\x00"))
		}
	}
	return ""
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
