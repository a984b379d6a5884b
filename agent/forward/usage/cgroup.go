package usage

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// group is the directory of a control group (cgroup v2). It is empty if the group is not known.
type group string

// ownGroup returns the control group of this process.
func ownGroup() group {
	b, err := os.ReadFile("/proc/self/cgroup")
	path, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "0::")
	if err != nil || !ok {
		return ""
	}
	return group(filepath.Join("/sys/fs/cgroup", path))
}

// short reports whether more than three quarters of the group's memory limit are in use. It returns
// false if the group has no limit.
func (g group) short() bool {
	most, ok := g.read("memory.max")
	if !ok {
		return false
	}
	now, ok := g.read("memory.current")
	return ok && now > most/4*3
}

func (g group) read(name string) (int64, bool) {
	if g == "" {
		return 0, false
	}
	b, err := os.ReadFile(filepath.Join(string(g), name))
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n, err == nil // the content is "max" if there is no limit
}
