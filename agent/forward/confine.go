package forward

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

// publicFiles lists the directories with public files that the forwarder, Go's resolver and the C
// library read. It names directories instead of files, because a file such as resolv.conf may be
// replaced by renaming.
var publicFiles = []string{"/etc", "/nix/store", "/proc", "/sys/fs/cgroup", "/usr/share/zoneinfo"}

const (
	accessRead  landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSReadDir
	accessStart landlock.AccessFSSet = ll.AccessFSReadFile | ll.AccessFSExecute
	accessServe landlock.AccessFSSet = accessRead | ll.AccessFSMakeSock | ll.AccessFSRemoveFile
)

// libraryFiles lists the directories of the C library and of the account databases that it reads.
// The forwarder needs them to run getent(1). On NixOS they are in the Nix store.
var libraryFiles = []string{"/lib", "/lib32", "/lib64", "/usr/lib", "/usr/lib32", "/usr/lib64", "/var/lib/sss/mc", "/var/lib/extrausers"}

// Confine uses Landlock to restrict this process permanently to the files that a forwarder needs,
// so that a remote attacker who takes over the process cannot read other files. It adds to the
// restrictions of the systemd unit. Afterwards the process can only:
//
//   - read the state directory of activation and public files,
//   - create and remove Unix sockets in the directory of its own socket,
//   - connect to any socket, and
//   - run getent(1).
//
// If the kernel does not support Landlock, or the systemd unit does not permit it, Confine returns
// an error that says what is missing.
func Confine(state hostdir.Layout, socket string) error {
	names := []string{}
	if resolv, err := filepath.EvalSymlinks("/etc/resolv.conf"); err == nil {
		names = append(names, filepath.Dir(resolv))
	}
	var programs []string
	if getent := nss.Program(); getent != "" {
		programs = append(programs, getent)
		if loader := loaderOf(getent); loader != "" {
			programs = append(programs, loader)
		}
	}
	err := landlock.V5.BestEffort().RestrictPaths(
		landlock.PathAccess(accessRead, string(state)),
		landlock.PathAccess(accessServe, filepath.Dir(socket)),
		landlock.PathAccess(accessRead, slices.Concat(names, publicFiles, libraryFiles)...).IgnoreIfMissing(),
		landlock.PathAccess(accessStart, programs...).IgnoreIfMissing(),
	)
	if err != nil {
		return fmt.Errorf("landlock: %w", err)
	}
	return confinedNow()
}

// loaderOf returns the path of the dynamic loader of a program, which the process must be able to
// read to run the program. It returns "" for a static program.
func loaderOf(program string) string {
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

// confinedNow checks that the restriction works. It tries an access that the restriction must
// refuse, and returns an error if the access succeeds.
func confinedNow() error {
	f, err := os.Open("/")
	if errors.Is(err, fs.ErrPermission) {
		return nil
	}
	if err == nil {
		f.Close()
	}
	return errors.New("landlock: not in force: the kernel does not have it, see /sys/kernel/security/lsm, or the unit's SystemCallFilter= lacks it")
}
