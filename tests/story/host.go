package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"sync"
	"syscall"
	"time"

	"florete"
)

// host is one machine of the cluster: its files below dir and its processes.
type host struct {
	name, dir, bin string
	manifest       florete.Manifest
	mu             sync.Mutex
	running        map[string]*process
}

type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

func (h *host) layout() florete.Layout { return florete.Layout(filepath.Join(h.dir, "state")) }
func (h *host) closure() string        { return filepath.Join(h.dir, "closure") }
func (h *host) hostKey() string        { return filepath.Join(h.dir, "ssh_host_ed25519_key") }
func (h *host) socket() string         { return filepath.Join(h.dir, "agent.sock") }
func (h *host) log(part string) string { return filepath.Join(h.dir, part+".log") }

// deploy is what nixos-rebuild switch does: the host's closure is now this set of
// documents.
func (h *host) deploy(documents string) error {
	d, err := florete.Read(documents, florete.DocManifest)
	if err != nil {
		return err
	}
	if h.manifest, err = d.Manifest(); err != nil {
		return err
	}
	tmp := h.closure() + ".new"
	_ = os.Remove(tmp)
	if err := os.Symlink(documents, tmp); err != nil {
		return err
	}
	return os.Rename(tmp, h.closure())
}

func (h *host) start(part string, args ...string) error {
	if err := h.stop(part, syscall.SIGTERM); err != nil {
		return err
	}
	log, err := os.OpenFile(h.log(part), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(filepath.Join(h.bin, args[0]), args[1:]...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = h.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		return err
	}
	p := &process{cmd, make(chan struct{})}
	go func() {
		_ = cmd.Wait()
		close(p.done)
	}()
	h.mu.Lock()
	defer h.mu.Unlock()
	h.running[part] = p
	return nil
}

// stop signals a part of the host and waits until it has ended.
func (h *host) stop(part string, sig syscall.Signal) error {
	h.mu.Lock()
	p := h.running[part]
	delete(h.running, part)
	h.mu.Unlock()
	if p == nil {
		return nil
	}
	_ = p.cmd.Process.Signal(sig)
	select {
	case <-p.done:
		return nil
	case <-time.After(patience):
		_ = p.cmd.Process.Kill()
		<-p.done
		return fmt.Errorf("%s: %s did not end within %s of %s; see %s", h.name, part, patience, sig, h.log(part))
	}
}

func (h *host) activateArgs(more ...string) []string {
	return append([]string{"flor", "activate", "--closure", h.closure(), "--state", string(h.layout()),
		"--ssh-host-key", h.hostKey(), "--hook", filepath.Join(h.dir, "hook"),
		"--backoff-initial", "200ms", "--backoff-max", "2s"}, more...)
}

func (h *host) activate() error { return h.start("activate", h.activateArgs()...) }

func (h *host) agent() error {
	return h.start("agent", "flor", "agent", "run", "--state", string(h.layout()), "--socket", h.socket())
}

func (h *host) provider() error {
	return h.start("provider", "flor-provider", "run", "--settings", filepath.Join(h.dir, "provider.hujson"))
}

// once makes one pass of activation and returns its exit code and output.
func (h *host) once(ctx context.Context) (int, string, error) {
	args := h.activateArgs("--once")
	cmd := exec.CommandContext(ctx, filepath.Join(h.bin, args[0]), args[1:]...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = nil
	}
	return cmd.ProcessState.ExitCode(), string(out), err
}

// needState is what activation records of a need.
type needState struct {
	State     string `json:"state"`
	Attempts  int    `json:"attempts"`
	Total     int    `json:"total"`
	Fulfilled int64  `json:"fulfilled"`
	Provider  string `json:"provider"`
	Told      int    `json:"told"`
	Error     *struct {
		Kind, Code, Message string
	} `json:"error"`
}

// needs reads the state of every need of the host.
func (h *host) needs() (map[string]needState, error) {
	all := map[string]needState{}
	for _, n := range h.manifest.Needs {
		var s needState
		b, err := os.ReadFile(h.layout().NeedState(n.ID))
		if err == nil {
			err = json.Unmarshal(b, &s)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%s: need %s: %w", h.name, n.ID, err)
		}
		if s.State == "" {
			s.State = "waiting"
		}
		all[n.ID] = s
	}
	return all, nil
}

// fulfilled tells whether all needs are, and every unit that waits for one was told.
func (h *host) fulfilled() bool {
	all, err := h.needs()
	for _, n := range h.manifest.Needs {
		if s := all[n.ID]; s.State != "fulfilled" || len(n.OnChange) > 0 && s.Told == 0 {
			return false
		}
	}
	return err == nil
}

// asking tells whether a request has no answer yet.
func (h *host) asking() bool {
	return slices.ContainsFunc(h.manifest.Needs, func(n florete.Need) bool {
		return exists(filepath.Join(h.layout().Need(n.ID), "pending.json"))
	})
}

// value is a delivered file.
func (h *host) value(need, file string) (string, error) {
	b, err := os.ReadFile(filepath.Join(florete.Current(h.layout().Need(need)), file))
	return string(b), err
}
