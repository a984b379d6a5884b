// Package confine restricts the forwarder to the files that it needs, so that a remote attacker who
// takes over the process cannot read other files. The restriction uses Landlock, and the process
// cannot lift it again. It adds to the restrictions of the systemd unit.
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

// public lists the directories with public files that the forwarder, Go's resolver and the C
// library read. It names directories instead of files, because a file such as resolv.conf may be
// replaced by renaming.
var public = []string{"/etc", "/nix/store", "/proc", "/sys/fs/cgroup", "/usr/share/zoneinfo"}

const (
	read  landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSReadDir
	start landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSExecute
	serve landlock.AccessFSSet = read | ll.AccessFSMakeSock | ll.AccessFSRemoveFile
)

// libraries lists the directories of the C library and of the account databases that it reads. The
// forwarder needs them to run getent(1). On NixOS they are in the Nix store.
var libraries = []string{"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/var/lib/sss/mc", "/var/lib/extrausers"}

// Agent uses Landlock to restrict this process permanently to the files that a forwarder needs.
// Afterwards the process can only:
//
//   - read the state directory of activation and public files,
//   - create and remove Unix sockets in the directory of its own socket,
//   - connect to any socket, and
//   - run getent(1).
//
// If the kernel does not support Landlock, or the systemd unit does not permit it, Agent returns an
// error that says what is missing.
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

// loader returns the path of the dynamic loader of a program, which the process must be able to
// read to run the program. It returns "" for a static program.
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

// inForce checks that the restriction works. It tries an access that the restriction must refuse,
// and returns an error if the access succeeds.
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
