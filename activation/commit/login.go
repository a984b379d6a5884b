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

// login locates the kernel's data about the caller's login.
type login struct{ proc, cgroups string }

// kernel locates the data of this machine.
var kernel = login{"/proc", "/sys/fs/cgroup"}

// clockTick is the unit of times in /proc on every architecture (USER_HZ).
const clockTick = time.Second / 100

// began returns the time by CLOCK_BOOTTIME at which the login session of this process began. That
// is the start of the oldest of its processes. ok is false outside of a session, as in a unit or in
// a container that was entered.
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
	if errors.Is(err, fs.ErrNotExist) { // only control groups of version 1 are used
		return 0, scope, false, nil
	}
	if err != nil {
		return 0, scope, false, err
	}
	for _, pid := range strings.Fields(string(list)) {
		stat, err := os.ReadFile(filepath.Join(k.proc, pid, "stat"))
		if err != nil {
			continue // the process has ended
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

// session returns the control group of a login (cgroups(7), version 2) and its name, as created by
// systemd-logind: session-12.scope.
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

// started returns the start time of a process in proc_pid_stat(5). The second field may contain any
// characters in parentheses.
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
