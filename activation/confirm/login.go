package confirm

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

// login finds out when the login session of the caller began. Its fields are the directories in
// which the kernel's data is mounted.
type login struct{ proc, cgroups string }

// kernel reads the data of the running kernel.
var kernel = login{"/proc", "/sys/fs/cgroup"}

// clockTick is the unit of times in /proc on every architecture (USER_HZ).
const clockTick = time.Second / 100

// began returns the time at which the login session of this process began, measured by
// CLOCK_BOOTTIME. That is the start of the oldest process in the session. If this process runs
// outside a login session, for example in a systemd unit or in a container that was entered, ok is
// false.
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
	for pid := range strings.FieldsSeq(string(list)) {
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

// session returns the path and the name of the control group of a login session (cgroups(7),
// version 2). The name is assigned by systemd-logind, for example session-12.scope.
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

// started returns the start time of a process from the content of its stat file (proc_pid_stat(5)).
// The second field of this file is the program's name in parentheses, which may itself contain
// spaces and parentheses.
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
