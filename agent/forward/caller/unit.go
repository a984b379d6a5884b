package caller

import (
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// cgroups returns the mount point of the cgroup v2 hierarchy. It is a separate directory if systemd
// uses both versions.
var cgroups = sync.OnceValue(func() string {
	const alone, mixed = "/sys/fs/cgroup", "/sys/fs/cgroup/unified"
	var fs unix.Statfs_t
	if unix.Statfs(mixed, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return mixed
	}
	return alone
})

// unitPath returns the control group of a system unit, as in /proc/PID/cgroup. An instance of a
// template is in the template's slice (systemd.slice(5)).
func unitPath(unit string) string {
	if template, _, ok := strings.Cut(unit, "@"); ok {
		return "/system.slice/system-" + strings.ReplaceAll(template, "-", `\x2d`) + ".slice/" + unit
	}
	return "/system.slice/" + unit
}

// cgroupNumber returns the ID of the control group at a path, as in sock_diag(7), or zero if there
// is none. An ID is not reused before the next boot.
func cgroupNumber(path string) uint64 {
	var st unix.Stat_t
	if unix.Stat(filepath.Join(cgroups(), path), &st) != nil {
		return 0
	}
	return st.Ino
}

// inUnit reports whether the process belongs to a running system unit. User units of the same name
// are below user.slice and do not match.
func (p Process) inUnit(unit string) bool {
	return p.Cgroup != 0 && p.Cgroup == cgroupNumber(unitPath(unit))
}
