package delivery

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/florete/florete/internal/atomicfile"
)

// diskDir makes a copy of this test binary, in a mount namespace of its own, mount a small disk
// there and run one of the tests below.
const diskDir = "DELIVERY_DISK_DIR"

// noMount is the output of a part that security modules do not allow to mount (AppArmor's
// restriction of unprivileged user namespaces).
const noMount = "may not mount"

// TestDisk runs its parts if they may mount.
func TestDisk(t *testing.T) {
	if os.Getenv(diskDir) != "" {
		t.Skip("is the inner one")
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestOnDisk", "-test.v")
	cmd.Env = append(os.Environ(), diskDir+"="+t.TempDir())
	cmd.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWNS | syscall.CLONE_NEWUSER,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
	}
	out, err := cmd.CombinedOutput()
	for _, no := range []error{syscall.EPERM, syscall.EACCES, syscall.ENOSPC, syscall.EINVAL} {
		if errors.Is(err, no) {
			t.Skipf("NOT RUN: no user namespaces here: %v", err)
		}
	}
	if strings.Contains(string(out), noMount) {
		t.Skipf("NOT RUN: user namespaces here have no rights\n%s", out)
	}
	if err != nil || strings.Count(string(out), "--- PASS: TestOnDisk") != 2 {
		t.Fatalf("%v\n%s", err, out)
	}
}

// disk mounts a file system of 128 KiB.
func disk(t *testing.T) string {
	dir := os.Getenv(diskDir)
	if dir == "" {
		t.Skip("runs inside TestDisk")
	}
	err := syscall.Mount("none", dir, "tmpfs", 0, "size=128k")
	if errors.Is(err, fs.ErrPermission) {
		t.Skip(noMount)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Unmount(dir, syscall.MNT_DETACH) })
	return dir
}

func TestOnDiskFull(t *testing.T) {
	d := Dir{Path: filepath.Join(disk(t), "need")}
	if _, err := d.Deliver(version("old")); err != nil {
		t.Fatal(err)
	}
	big := version("new")
	big["ballast"] = File{Data: make([]byte, 1<<20), Mode: 0o444, UID: -1, GID: -1}
	if _, err := d.Deliver(big); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("error %v, want no space", err)
	}
	if got := whole(t, d.Path); got != "old" {
		t.Errorf("%q is in force", got)
	}
	if names := generations(t, d.Path); len(names) != 2 {
		t.Errorf("left over: %v", names)
	}
	if err := atomicfile.File(filepath.Join(d.Path, "state.json"), make([]byte, 1<<20), 0o644); !errors.Is(err, syscall.ENOSPC) {
		t.Errorf("error %v, want no space", err)
	}
	if _, err := d.Deliver(version("new")); err != nil || whole(t, d.Path) != "new" {
		t.Errorf("after it: %v", err)
	}
}

func TestOnDiskReadOnly(t *testing.T) {
	dir := disk(t)
	d := Dir{Path: filepath.Join(dir, "need")}
	if _, err := d.Deliver(version("old")); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", dir, "tmpfs", syscall.MS_REMOUNT|syscall.MS_RDONLY, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := d.Deliver(version("new")); !errors.Is(err, syscall.EROFS) {
		t.Fatalf("error %v, want read-only", err)
	}
	if got := whole(t, d.Path); got != "old" {
		t.Errorf("%q is in force", got)
	}
	if gen, err := d.Deliver(version("old")); err != nil || gen != 1 {
		t.Errorf("what is in force already: generation %d, %v", gen, err)
	}
}
