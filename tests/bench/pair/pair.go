// Package pair runs the two ends of a tunnel as separate processes, so that a benchmark can measure
// their memory and processor time.
package pair

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Pair is the two ends of a tunnel, each in its own process, for measuring the tunnel. Connections
// to the address Addr go through the tunnel to a server (the upstream).
type Pair struct {
	Addr    string
	started []*exec.Cmd
	dirs    []string
}

// Start starts a process as one end of the tunnel. The process gets the environment of this process
// and the variables in env.
func (p *Pair) Start(env []string, command ...string) error {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Env = append(os.Environ(), env...)
	cmd.Stderr = os.Stderr
	if err := cmd.Start(); err != nil {
		return err
	}
	p.started = append(p.started, cmd)
	return nil
}

// StartSelf starts this program again as a process of the pair.
func (p *Pair) StartSelf(env ...string) error { return p.Start(env, "/proc/self/exe") }

// Dir creates a directory for the pair, which Stop removes.
func (p *Pair) Dir() (string, error) {
	dir, err := os.MkdirTemp("", "bench")
	p.dirs = append(p.dirs, dir)
	return dir, err
}

// Stop ends the processes of the pair and removes their directories.
func (p *Pair) Stop() {
	for _, cmd := range p.started {
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
	}
	for _, dir := range p.dirs {
		os.RemoveAll(dir)
	}
}

// Snapshot makes the forwarders write memory profiles, and waits a second for that. Without the
// environment variable ProfileEnv, it does nothing.
func (p *Pair) Snapshot() {
	if os.Getenv(ProfileEnv) == "" {
		return
	}
	for _, cmd := range p.started {
		cmd.Process.Signal(syscall.SIGUSR1)
	}
	time.Sleep(time.Second)
}

// Resident returns the resident memory of both processes together, in MiB.
func (p *Pair) Resident() (float64, error) {
	kib := 0
	for _, cmd := range p.started {
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
		if err != nil {
			return 0, err
		}
		_, rest, _ := strings.Cut(string(status), "VmRSS:")
		line, _, _ := strings.Cut(rest, "kB")
		n, err := strconv.Atoi(strings.TrimSpace(line))
		if err != nil {
			return 0, err
		}
		kib += n
	}
	return float64(kib) / 1024, nil
}

// CPU returns the total processor time that the processes of the pair have used since they started.
func (p *Pair) CPU() (time.Duration, error) {
	var all time.Duration
	for _, cmd := range p.started {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", cmd.Process.Pid))
		if err != nil {
			return 0, err
		}
		fields := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // proc_pid_stat(5), from the third field on
		for _, field := range fields[11:13] {
			ticks, err := strconv.Atoi(field)
			if err != nil {
				return 0, err
			}
			all += time.Duration(ticks) * (time.Second / 100)
		}
	}
	return all, nil
}

// within is the time for which Wait repeats its check.
const within = 10 * time.Second

// Wait calls check again and again until it returns nil. After ten seconds, Wait gives up and
// returns the last error.
func Wait(check func() error) error {
	for deadline := time.Now().Add(within); ; time.Sleep(10 * time.Millisecond) {
		if err := check(); err == nil || time.Now().After(deadline) {
			return err
		}
	}
}
