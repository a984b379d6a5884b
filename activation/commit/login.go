package commit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// login is where the kernel keeps what there is to know of the caller's login.
type login struct{ proc, cgroups string }

// kernel is this machine's.
var kernel = login{"/proc", "/sys/fs/cgroup"}

// clockTick is that of times in /proc, for every architecture (USER_HZ).
const clockTick = time.Second / 100

// began is when the login session of this process began, by CLOCK_BOOTTIME: that is when the
// first of its processes did, of those there are. ok is false outside of one, as in a unit
// or a container that was entered.
func (k login) began() (at time.Duration, scope string, ok bool, err error) {
	text, err := os.ReadFile(filepath.Join(k.proc, "self/cgroup"))
	if err != nil {
		return 0, "", false, err
	}
	path, scope := session(string(text))
	if scope == "" {
		return 0, "", false, nil
	}
	list, err := os.ReadFile(filepath.Join(k.cgroups, path, "cgroup.procs"))
	if errors.Is(err, fs.ErrNotExist) { // control groups of version 1
		return 0, scope, false, nil
	}
	if err != nil {
		return 0, scope, false, err
	}
	for _, pid := range strings.Fields(string(list)) {
		stat, err := os.ReadFile(filepath.Join(k.proc, pid, "stat"))
		if err != nil {
			continue // it has ended
		}
		if t, err := started(string(stat)); err == nil && (!ok || t < at) {
			at, ok = t, true
		}
	}
	if !ok {
		return 0, scope, false, fmt.Errorf("login %s: it has no process", scope)
	}
	return at, scope, true, nil
}

// session is the control group of a login, in cgroups(7) of version 2, and its name, as
// systemd-logind makes them: session-12.scope.
func session(cgroup string) (path, scope string) {
	for line := range strings.Lines(cgroup) {
		path, unified := strings.CutPrefix(strings.TrimSpace(line), "0::")
		if !unified {
			continue
		}
		for dir := path; dir != "/" && dir != "."; dir = filepath.Dir(dir) {
			name := filepath.Base(dir)
			if strings.HasPrefix(name, "session-") && strings.HasSuffix(name, ".scope") {
				return dir, strings.TrimSuffix(name, ".scope")
			}
		}
	}
	return "", ""
}

// started is the time of a process's start in proc_pid_stat(5), whose second field may hold
// anything in parentheses.
func started(stat string) (time.Duration, error) {
	_, after, _ := strings.Cut(stat[strings.LastIndexByte(stat, ')')+1:], " ")
	fields := strings.Fields(after)
	const field = 22 - 3 // counted from the third
	if len(fields) <= field {
		return 0, fmt.Errorf("proc_pid_stat: %d fields", len(fields))
	}
	ticks, err := strconv.ParseInt(fields[field], 10, 64)
	return time.Duration(ticks) * clockTick, err
}
