package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// process is the provider's process. The process that runs the hosts uses it to control and measure
// the provider.
type process struct {
	cmd   *exec.Cmd
	lines io.WriteCloser
	out   *bufio.Reader
}

func startProvider(c cluster) (*process, error) {
	p := &process{cmd: exec.Command("/proc/self/exe", roleProvider, c.dir, c.ip, c.engine)}
	p.cmd.Stderr = os.Stderr
	in, err := p.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	p.lines, p.out = in, bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	if _, err := p.out.ReadString('\n'); err != nil {
		return nil, fmt.Errorf("the provider ended: %w", err)
	}
	return p, nil
}

func (p *process) stop() {
	p.lines.Close()
	p.cmd.Wait()
}

// publish makes the provider import a version of the documents. It returns the time at which the
// import began.
func (p *process) publish(c cluster, version int) (at time.Time, err error) {
	if err := c.write(version); err != nil {
		return at, err
	}
	at, took, err := p.order(version)
	if err == nil {
		fmt.Printf("%-24s %10.2f s\n", "imported in", took)
	}
	return at, err
}

// profile makes the provider write its profiles since the previous step, if profiles are wanted.
func (p *process) profile(step string) error {
	_, _, err := p.order("profile " + step)
	return err
}

// order sends the provider a line, and waits for its reply.
func (p *process) order(line any) (began time.Time, took float64, err error) {
	fmt.Fprintln(p.lines, line)
	reply, err := p.out.ReadString('\n')
	if err != nil {
		return began, took, fmt.Errorf("the provider ended: %w", err)
	}
	var nano int64
	_, err = fmt.Sscan(reply, &nano, &took)
	return time.Unix(0, nano), took, err
}

// used returns the processor time that the provider has used since it started.
func (p *process) used() time.Duration { return usedBy(p.cmd.Process.Pid) }

// ownUse returns the processor time of this process, which runs the hosts.
func ownUse() time.Duration { return usedBy(os.Getpid()) }

func usedBy(pid int) time.Duration {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	_, rest, _ := strings.Cut(string(b), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0
	}
	user, _ := strconv.Atoi(fields[11])
	system, _ := strconv.Atoi(fields[12])
	return time.Duration(user+system) * time.Second / 100
}

// resident returns the resident memory of the provider in MiB.
func (p *process) resident() float64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.cmd.Process.Pid))
	_, rest, _ := strings.Cut(string(b), "VmRSS:")
	line, _, _ := strings.Cut(rest, "kB")
	n, _ := strconv.Atoi(strings.TrimSpace(line))
	return float64(n) / 1024
}
