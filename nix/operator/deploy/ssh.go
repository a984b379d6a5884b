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

// remote runs commands on a host as root. Each command uses a new connection, because a
// confirmation must prove that a new connection is possible.
type remote struct {
	name    string
	options []string // options of ssh(1)
	state   hostdir.Layout
	flor    string // name of its program flor
	dir     string // directory with the known host key
}

// connect determines how to reach a host over SSH: as configured in ssh_config(5), or otherwise at
// the host's address in the topology. The host must prove that it has the key that the flake
// declares.
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

// hostName returns the host name in the output of ssh -G.
func hostName(config string) string {
	for line := range strings.Lines(config) {
		if name, found := strings.CutPrefix(line, "hostname "); found {
			return strings.TrimSpace(name)
		}
	}
	return ""
}

// withoutPort removes the forwarder's port from an address in the topology.
func withoutPort(address string) string {
	if host, _, err := net.SplitHostPort(address); err == nil {
		return host
	}
	return address
}

// lost is the exit status of ssh(1) after a connection was lost or could not be made.
const lost = 255

// cutOff reports whether the error of a command means that the connection was lost. The command may
// then still be running on the host.
func cutOff(err error) bool {
	var exit *exec.ExitError
	return !errors.As(err, &exit) || exit.ExitCode() == lost || exit.ExitCode() < 0
}

// run runs a shell command on the host and returns its output.
func (r *remote) run(ctx context.Context, in io.Reader, line string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, "ssh", append(append([]string{}, r.options...), "root@"+r.name, line)...)
	var out, problem bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = in, &out, &problem
	if err := cmd.Run(); err != nil {
		return out.Bytes(), fmt.Errorf("ssh root@%s: %w: %s", r.name, err, strings.TrimSpace(problem.String()))
	}
	return out.Bytes(), nil
}
