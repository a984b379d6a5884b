package caller

import (
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// cgroups returns the mount point of the cgroup v2 hierarchy. If systemd uses both versions of
// cgroups, version 2 has a directory of its own.
var cgroups = sync.OnceValue(func() string {
	const alone, mixed = "/sys/fs/cgroup", "/sys/fs/cgroup/unified"
	var fs unix.Statfs_t
	if unix.Statfs(mixed, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return mixed
	}
	return alone
})

// unitPath returns the path of a system unit's control group, in the form of /proc/PID/cgroup. An
// instance of a template unit is in the slice of the template (systemd.slice(5)).
func unitPath(unit string) string {
	if template, _, ok := strings.Cut(unit, "@"); ok {
		return "/system.slice/system-" + strings.ReplaceAll(template, "-", `\x2d`) + ".slice/" + unit
	}
	return "/system.slice/" + unit
}

// cgroupNumber returns the ID of the control group at a path, as sock_diag(7) reports it. It
// returns zero if there is no such group. The kernel does not reuse an ID before the next boot.
func cgroupNumber(path string) uint64 {
	var st unix.Stat_t
	if unix.Stat(filepath.Join(cgroups(), path), &st) != nil {
		return 0
	}
	return st.Ino
}

// inUnit reports whether the process belongs to the given system unit, which must be running. It
// does not match user units, because their control groups are below user.slice.
func (p Process) inUnit(unit string) bool {
	return p.Cgroup != 0 && p.Cgroup == cgroupNumber(unitPath(unit))
}
