package caller

import (
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// cgroups is where control groups of version 2 are: in a place of their own where systemd
// mixes both versions.
var cgroups = sync.OnceValue(func() string {
	const alone, mixed = "/sys/fs/cgroup", "/sys/fs/cgroup/unified"
	var fs unix.Statfs_t
	if unix.Statfs(mixed, &fs) == nil && fs.Type == unix.CGROUP2_SUPER_MAGIC {
		return mixed
	}
	return alone
})

// unitPath is the control group of a system unit, as /proc/PID/cgroup has it. An instance
// has a slice of its template around it (systemd.slice(5)).
func unitPath(unit string) string {
	if template, _, ok := strings.Cut(unit, "@"); ok {
		return "/system.slice/system-" + strings.ReplaceAll(template, "-", `\x2d`) + ".slice/" + unit
	}
	return "/system.slice/" + unit
}

// cgroupNumber identifies the control group at a path among all that there ever were since the
// host booted, as sock_diag(7) has it too; zero where there is none.
func cgroupNumber(path string) uint64 {
	var st unix.Stat_t
	if unix.Stat(filepath.Join(cgroups(), path), &st) != nil {
		return 0
	}
	return st.Ino
}

// inUnit reports whether the process is one of a running unit of the system. A unit of the
// same name that an account runs for itself is below user.slice.
func (p Process) inUnit(unit string) bool {
	return p.Cgroup != 0 && p.Cgroup == cgroupNumber(unitPath(unit))
}
