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

// Declared is the directory where the host's administrator declares further capabilities,
// an empty file for each.
const Declared = "/etc/florete/capabilities"

// devices are the capabilities that the kernel shows, sysfs(5).
var devices = map[string]string{
	"gpu": "/sys/class/drm/renderD128",
	"kvm": "/sys/class/misc/kvm",
	"tpm": "/sys/class/tpmrm/tpmrm0",
}

// FindFacts finds the facts of this machine; dir is where its state lies. What cannot be found is
// zero.
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

// system is the name in a file of os-release(5).
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

// capabilities are those that devices show, and those declared in a directory, sorted.
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
