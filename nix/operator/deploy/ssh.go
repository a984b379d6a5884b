package deploy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/florete/florete/internal/hostdir"
)

// remote runs commands on a host as root. Each has a connection of its own, since what a
// confirmation proves is that one can be made.
type remote struct {
	name    string
	options []string // of ssh(1)
	state   hostdir.Layout
	flor    string // how its program is called
	dir     string // with the key that the host must have
}

// connect finds how to reach a host: as ssh_config(5) has it, else at its address in the
// topology. It proves to be the one whose key the flake declares.
func connect(ctx context.Context, h Host) (*remote, error) {
	m := h.Topology.Instance
	r := &remote{name: h.Name, state: m.State(), flor: m.Program("flor"), options: []string{
		"-o", "BatchMode=yes", "-o", "ConnectTimeout=10", "-o", "ServerAliveInterval=5", "-o", "ServerAliveCountMax=3",
		"-o", "ControlMaster=no", "-o", "ControlPath=none",
	}}
	out, err := exec.CommandContext(ctx, "ssh", "-G", h.Name).Output()
	if errors.Is(err, exec.ErrNotFound) {
		return nil, fmt.Errorf("%w: install an SSH client", err)
	}
	if err != nil {
		return nil, fmt.Errorf("ssh -G %s: %w", h.Name, err)
	}
	if configured := hostName(string(out)); configured == h.Name && len(h.Topology.Address) > 0 {
		r.options = append(r.options, "-o", "HostName="+withoutPort(h.Topology.Address[0]))
	}
	if h.Topology.SSHHostKey == "" {
		return r, nil
	}
	if r.dir, err = os.MkdirTemp("", "florctl-deploy-"); err != nil {
		return nil, err
	}
	known := filepath.Join(r.dir, "known_hosts")
	r.options = append(r.options, "-o", "HostKeyAlias="+h.Name, "-o", "UserKnownHostsFile="+known, "-o", "GlobalKnownHostsFile=none", "-o", "StrictHostKeyChecking=yes")
	return r, os.WriteFile(known, []byte(h.Name+" "+h.Topology.SSHHostKey+"\n"), 0o600)
}

func (r *remote) close() {
	if r.dir != "" {
		os.RemoveAll(r.dir)
	}
}

// hostName is where ssh -G has a host.
func hostName(config string) string {
	for line := range strings.Lines(config) {
		if name, found := strings.CutPrefix(line, "hostname "); found {
			return strings.TrimSpace(name)
		}
	}
	return ""
}

// withoutPort is an address of the topology without the forwarder's port.
func withoutPort(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// lost is the exit status of ssh(1) that lost its connection, or got none.
const lost = 255

// cutOff reports whether a command ended because its connection did: it may go on there.
func cutOff(err error) bool {
	var exit *exec.ExitError
	return !errors.As(err, &exit) || exit.ExitCode() == lost || exit.ExitCode() < 0
}

// run runs a line of shell there, and returns what it printed.
func (r *remote) run(ctx context.Context, in io.Reader, line string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "ssh", append(append([]string{}, r.options...), "root@"+r.name, line)...)
	var out, problem bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &problem
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("ssh root@%s: %w: %s", r.name, err, strings.TrimSpace(problem.String()))
	}
	return out.Bytes(), nil
}
