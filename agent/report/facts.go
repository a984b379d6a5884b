package report

import (
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"github.com/florete/florete/internal/hostreport"
	"github.com/florete/florete/internal/unixtime"
)

// Declared is the directory in which an administrator declares additional capabilities of the
// machine. Each capability is an empty file.
const Declared = "/etc/florete/capabilities"

// devices maps each detected capability to a path in sysfs(5). The path exists on machines that
// have the device for this capability.
var devices = map[string]string{
	"gpu": "/sys/class/drm/renderD128",
	"kvm": "/sys/class/misc/kvm",
	"tpm": "/sys/class/tpmrm/tpmrm0",
}

// FindFacts returns the facts about this machine for a host's report, such as its memory and its
// kernel. The state of the host is in the directory dir. The directory declared contains the
// capabilities that an administrator has declared. A fact that cannot be found is left zero.
func FindFacts(dir, declared string) hostreport.Facts {
	f := hostreport.Facts{
		System: system("/etc/os-release"), Architecture: runtime.GOARCH, CPUs: runtime.NumCPU(),
		Capabilities: capabilities(declared),
	}
	var m unix.Sysinfo_t
	if unix.Sysinfo(&m) == nil {
		f.Memory = hostreport.Capacity{Total: m.Totalram * uint64(m.Unit), Free: (m.Freeram + m.Bufferram) * uint64(m.Unit)}
	}
	var name unix.Utsname
	if unix.Uname(&name) == nil {
		f.Kernel = unix.ByteSliceToString(name.Release[:])
	}
	var up unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &up) == nil {
		f.Booted = unixtime.Of(time.Now().Add(-time.Duration(up.Nano())))
	}
	var s unix.Statfs_t
	if unix.Statfs(dir, &s) == nil {
		f.Disk = hostreport.Capacity{Total: s.Blocks * uint64(s.Bsize), Free: s.Bavail * uint64(s.Bsize)}
	}
	return f
}

// system reads a file in the format of os-release(5). It returns the name of the operating system
// (PRETTY_NAME).
func system(path string) string {
	b, _ := os.ReadFile(path)
	for line := range strings.Lines(string(b)) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "PRETTY_NAME="); ok {
			if text, err := strconv.Unquote(name); err == nil {
				return text
			}
			return strings.Trim(name, "'")
		}
	}
	return ""
}

// capabilities returns the capabilities of the machine in sorted order. They are either detected or
// declared by an administrator.
func capabilities(declared string) []string {
	all := []string{}
	for name, path := range devices {
		if _, err := os.Stat(path); err == nil {
			all = append(all, name)
		}
	}
	entries, _ := os.ReadDir(declared)
	for _, e := range entries {
		if name := filepath.Base(e.Name()); e.Type().IsRegular() && !strings.HasPrefix(name, ".") {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
